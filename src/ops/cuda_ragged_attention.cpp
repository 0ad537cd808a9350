#include "ops/cuda_ragged_attention.h"

#include <algorithm>

#include <ATen/cudnn/Handle.h>
#include <c10/cuda/CUDAGuard.h>

#include "core/check.h"
#include "ops/attention_choice.h"
#include "ops/backend.h"
#include "ops/cuda_ragged_plan.h"

namespace antisd::inline ops {
namespace {

using torch::autograd::variable_list;

constexpr std::int64_t kSpareRows = 128;  // as a kernel's largest tile has

constexpr std::uintptr_t kAlignment = 16;  // bytes, of every operand

// Arrays of a part begin at multiples of this many numbers, aligned for any load.
constexpr std::int64_t kTableStep = 32;
std::int64_t table_width(const RaggedRun& run) {
  return (run.sequences + 1 + kTableStep - 1) / kTableStep * kTableStep;
}

// Appends the numbers of a run. The sequences that its plan has too many are one token long and
// take the row behind the run: what they write there is a spare row, or is written again by the
// next run.
RaggedPart add_part(const RaggedRun& run, const AttentionLayout& layout, const RaggedHeads& heads,
                    std::vector<std::int32_t>& numbers) {
  const auto row = [&](const std::vector<std::int32_t>& offsets, std::int64_t i) {
    const std::size_t sequence = std::min(run.first + static_cast<std::size_t>(i), run.last);
    return std::int64_t{offsets[sequence]} - offsets[run.first];
  };
  RaggedPart part{.run = run,
                  .first_query = layout.query_offsets[run.first],
                  .first_key = layout.key_offsets[run.first],
                  .queries = layout.query_offsets[run.last] - layout.query_offsets[run.first],
                  .keys = layout.key_offsets[run.last] - layout.key_offsets[run.first],
                  .begin = static_cast<std::int64_t>(numbers.size())};
  const auto add = [&](const auto& value) {
    const std::size_t begin = numbers.size();
    numbers.resize(begin + static_cast<std::size_t>(table_width(run)), 1);
    for (std::int64_t i = 0; i <= run.sequences; ++i)
      numbers[begin + static_cast<std::size_t>(i)] = static_cast<std::int32_t>(value(i));
  };
  const auto length = [&](const std::vector<std::int32_t>& offsets, std::int64_t i) {
    return std::max<std::int64_t>(1, row(offsets, i + 1) - row(offsets, i));
  };
  const std::int64_t query_stride = heads.heads * heads.head_dim;
  const std::int64_t key_stride = heads.kv_heads * heads.head_dim;
  add([&](std::int64_t i) { return length(layout.query_offsets, i); });
  add([&](std::int64_t i) { return length(layout.key_offsets, i); });
  add([&](std::int64_t i) { return row(layout.query_offsets, i) * query_stride; });
  add([&](std::int64_t i) { return row(layout.key_offsets, i) * key_stride; });
  add([&](std::int64_t i) { return row(layout.query_offsets, i) * run.heads; });
  return part;
}

// The part of a tensor's memory that begins at a row and a head.
char* at_row(const at::Tensor& x, std::int64_t row, std::int64_t head = 0) {
  return static_cast<char*>(const_cast<void*>(x.const_data_ptr())) +
         (row * x.stride(0) + head * x.stride(1)) * x.element_size();
}

at::Tensor rows_like(const at::Tensor& x, std::int64_t rows) {
  return at::empty({rows, x.size(1), x.size(2)}, x.options());
}

RaggedCall call_of(const RaggedPart& part, const RaggedHeads& heads, const at::Tensor& q,
                   std::int64_t window, double scale) {
  const RaggedRun& run = part.run;
  const int device = q.device().index();
  return {.device = device,
          .capability = attention_card(device).capability,
          .type = element_type(q),
          .heads = run.heads,
          .kv_heads = run.kv_heads(heads),
          .head_dim = heads.head_dim,
          .query_stride = heads.heads * heads.head_dim,
          .key_stride = heads.kv_heads * heads.head_dim,
          .lse_stride = run.heads,
          .sequences = run.sequences,
          .query_length = run.query_length,
          .key_length = run.key_length,
          .prefix = run.prefix,
          .window = window,
          .scale = static_cast<float>(scale)};
}

void set_tables(RaggedPointers& pointers, const RaggedPart& part, const RaggedTables& tables) {
  const auto* numbers = tables.numbers.const_data_ptr<std::int32_t>() + part.begin;
  const std::int64_t width = table_width(part.run);
  pointers.query_lengths = numbers;
  pointers.key_lengths = numbers + width;
  pointers.query_offsets = numbers + 2 * width;
  pointers.key_offsets = numbers + 3 * width;
  pointers.lse_offsets = numbers + 4 * width;
}

void run_plan(const RaggedPlan& plan, const RaggedPointers& pointers, const at::Tensor& like) {
  const at::Tensor workspace = at::empty({std::max<std::int64_t>(1, ragged_workspace(plan))},
                                         like.options().dtype(at::kByte));
  run_ragged_plan(plan, at::native::getCudnnHandle(), pointers, workspace.mutable_data_ptr());
}

const RaggedPlan* find_forward(const at::Tensor& q, const RaggedTables& tables, std::int64_t window,
                               double scale) {
  const c10::cuda::CUDAGuard guard(q.device());
  return find_ragged_plan(call_of(tables.forward, tables.heads, q, window, scale),
                          at::native::getCudnnHandle());
}

// The backward pass of one batch.
class RaggedBackward {
 public:
  RaggedBackward(const at::Tensor& gradient, const at::Tensor& q, const at::Tensor& k,
                 const at::Tensor& v, const at::Tensor& out, const at::Tensor& lse,
                 const RaggedTables& tables)
      : tables_(tables), q_(q), k_(k), v_(v), out_(out), lse_(lse) {
    gradient_ = with_spare_rows(gradient);
    dq_ = at::empty_like(q);
    dk_ = at::empty_like(k);
    dv_ = at::empty_like(v);
  }

  // Call it in the order of the parts: a part may spoil rows behind its own.
  void add(const RaggedPart& part, const RaggedPlan& plan) {
    const RaggedHeads& all = tables_.heads;
    const std::int64_t parts = part.run.parts(all);
    // Where several calls share a head of keys, each has gradients of its own, added up below.
    variable_list dk = {dk_.narrow(0, part.first_key, dk_.size(0) - part.first_key)};
    variable_list dv = {dv_.narrow(0, part.first_key, dv_.size(0) - part.first_key)};
    for (std::int64_t i = 1; i < parts; ++i) {
      dk.push_back(rows_like(dk_, part.keys + kSpareRows));
      dv.push_back(rows_like(dv_, part.keys + kSpareRows));
    }
    for (std::int64_t head = 0; head < all.heads; head += part.run.heads) {
      const std::int64_t kv_head = head / all.group();
      const std::int64_t i = head % all.group() / part.run.heads;
      call(part, plan, head, kv_head, dk[i], dv[i]);
    }
    if (parts > 1) {
      add_up(dk, part.keys);
      add_up(dv, part.keys);
    }
  }

  variable_list result() const {
    const auto rows = [](const at::Tensor& x) { return x.narrow(0, 0, x.size(0) - kSpareRows); };
    return {rows(dq_), rows(dk_), rows(dv_)};
  }

 private:
  void call(const RaggedPart& part, const RaggedPlan& plan, std::int64_t head, std::int64_t kv_head,
            const at::Tensor& dk, const at::Tensor& dv) {
    // A call's statistics lie together, at an address that cuDNN's loads of several need.
    at::Tensor lse = lse_.narrow(0, part.first_query, lse_.size(0) - part.first_query)
                         .narrow(1, head, part.run.heads)
                         .contiguous();
    if (reinterpret_cast<std::uintptr_t>(lse.const_data_ptr()) % kAlignment != 0) lse = lse.clone();
    RaggedPointers pointers;
    pointers.q = at_row(q_, part.first_query, head);
    pointers.k = at_row(k_, part.first_key, kv_head);
    pointers.v = at_row(v_, part.first_key, kv_head);
    pointers.out = at_row(out_, part.first_query, head);
    pointers.lse = lse.mutable_data_ptr();
    pointers.gradient = at_row(gradient_, part.first_query, head);
    pointers.dq = at_row(dq_, part.first_query, head);
    pointers.dk = at_row(dk, 0, kv_head);
    pointers.dv = at_row(dv, 0, kv_head);
    set_tables(pointers, part, tables_);
    run_plan(plan, pointers, q_);
  }

  // In fp32, rounded once.
  static void add_up(const variable_list& parts, std::int64_t rows) {
    at::Tensor sum = parts[0].narrow(0, 0, rows).to(at::kFloat);
    for (std::size_t i = 1; i < parts.size(); ++i)
      sum.add_(parts[i].narrow(0, 0, rows));
    parts[0].narrow(0, 0, rows).copy_(sum);
  }

  const RaggedTables& tables_;
  const at::Tensor &q_, &k_, &v_, &out_, &lse_;
  at::Tensor gradient_, dq_, dk_, dv_;
};

}  // namespace

std::shared_ptr<const RaggedTables> ragged_tables(const AttentionLayout& layout,
                                                  const RaggedHeads& heads, at::Device device,
                                                  const RaggedLimits& limits) {
  if (layout.ragged_tables && layout.ragged_tables->heads == heads &&
      layout.ragged_tables->numbers.device() == device) {
    return layout.ragged_tables;
  }
  const auto tables = std::make_shared<RaggedTables>();
  tables->heads = heads;
  std::vector<std::int32_t> numbers;
  const RaggedRun all = forward_run(layout.query_offsets, layout.key_offsets, heads);
  tables->forward = add_part(all, layout, heads, numbers);
  for (const RaggedRun& run :
       backward_runs(layout.query_offsets, layout.key_offsets, heads, limits))
    tables->backward.push_back(add_part(run, layout, heads, numbers));
  tables->numbers = at::tensor(at::ArrayRef<std::int32_t>(numbers), at::kInt).to(device);
  layout.ragged_tables = tables;
  return tables;
}

at::Tensor with_spare_rows(const at::Tensor& x) {
  const at::Tensor copy = rows_like(x, x.size(0) + kSpareRows);
  copy.narrow(0, 0, x.size(0)).copy_(x);
  copy.narrow(0, x.size(0), kSpareRows).zero_();
  return copy;
}

bool has_ragged_forward(const at::Tensor& q, const RaggedTables& tables, std::int64_t window,
                        double scale) {
  return find_forward(q, tables, window, scale) != nullptr;
}

AttentionKept ragged_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const RaggedTables& tables, std::int64_t window, double scale) {
  const c10::cuda::CUDAGuard guard(q.device());
  const RaggedPlan* plan = find_forward(q, tables, window, scale);
  ANTISD_CHECK(plan != nullptr);
  const at::Tensor out = at::empty_like(q);
  const std::int64_t queries = q.size(0) - kSpareRows;
  out.narrow(0, queries, kSpareRows).zero_();
  const at::Tensor lse = at::empty({q.size(0), q.size(1)}, q.options().dtype(at::kFloat));
  lse.narrow(0, queries, kSpareRows).zero_();
  RaggedPointers pointers;
  pointers.q = q.const_data_ptr();
  pointers.k = k.const_data_ptr();
  pointers.v = v.const_data_ptr();
  pointers.out = out.mutable_data_ptr();
  pointers.lse = lse.mutable_data_ptr();
  set_tables(pointers, tables.forward, tables);
  run_plan(*plan, pointers, q);
  return {out.narrow(0, 0, queries), lse, out, at::Tensor()};
}

std::optional<variable_list> ragged_backward(const at::Tensor& gradient, const at::Tensor& q,
                                             const at::Tensor& k, const at::Tensor& v,
                                             const at::Tensor& out, const at::Tensor& lse,
                                             const RaggedTables& tables, std::int64_t window,
                                             double scale, SumOrder order) {
  const c10::cuda::CUDAGuard guard(q.device());
  const std::vector<RaggedPart> parts =
      order == SumOrder::kFixed ? tables.backward : std::vector<RaggedPart>{tables.forward};
  std::vector<const RaggedPlan*> plans;
  for (const RaggedPart& part : parts) {
    RaggedCall call = call_of(part, tables.heads, q, window, scale);
    call.backward = true;
    call.fixed_order = order == SumOrder::kFixed;
    call.query_rows = part.run.query_rows;
    call.key_rows = part.run.key_rows;
    plans.push_back(find_ragged_plan(call, at::native::getCudnnHandle()));
    if (plans.back() == nullptr) return std::nullopt;
  }
  RaggedBackward backward(gradient, q, k, v, out, lse, tables);
  for (std::size_t i = 0; i < parts.size(); ++i)
    backward.add(parts[i], *plans[i]);
  return backward.result();
}

}  // namespace antisd::inline ops
