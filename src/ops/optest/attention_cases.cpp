// What goes into attention, and attention over packed sequences.
#include <algorithm>
#include <cmath>

#include "ops/attention.h"
#include "ops/attention_inputs.h"
#include "ops/optest/op_case.h"

namespace antisd::inline ops {
namespace {

OpCase attention_inputs_case(const char* name, QkNorm norm, AttentionShape shape) {
  const std::int64_t tokens = 37, all = (shape.heads + 2 * shape.kv_heads) * shape.head_dim;
  const std::int64_t q_width =
      norm == QkNorm::kHead ? shape.head_dim : shape.heads * shape.head_dim;
  const std::int64_t k_width =
      norm == QkNorm::kHead ? shape.head_dim : shape.kv_heads * shape.head_dim;
  const at::Tensor angles = random({64, shape.head_dim / 2}, 4);
  std::vector<std::int32_t> positions;
  for (int i = 0; i < tokens; ++i)
    positions.push_back((i * 29) % 64);
  const auto op = [=](const Tensors& t) {
    const bool has_norm = norm != QkNorm::kNone;
    const RopeTable rope{angles.cos().to(at::kFloat).to(t[0].device()),
                         angles.sin().to(at::kFloat).to(t[0].device())};
    const auto parts =
        attention_inputs(t[0], shape, norm, has_norm ? t[1] : at::Tensor(),
                         has_norm ? t[2] : at::Tensor(), 1e-6, rope, integers(positions, t[0]));
    return Tensors{parts[0], parts[1], parts[2]};
  };
  const auto reference = [=](const Tensors& t) {
    const std::int64_t q_end = shape.heads * shape.head_dim,
                       k_end = q_end + shape.kv_heads * shape.head_dim;
    const at::Tensor rows =
        angles.index_select(0, integers(positions, t[0]).to(at::kLong)).unsqueeze(1);
    const auto prepare = [&](const at::Tensor& part, std::int64_t heads, std::size_t weight) {
      const at::Tensor by_head = part.view({tokens, heads, shape.head_dim});
      at::Tensor x = by_head;
      if (norm == QkNorm::kHead) x = plain_rms_norm(by_head, t[weight], 1e-6);
      if (norm == QkNorm::kProjection)
        x = plain_rms_norm(part, t[weight], 1e-6).view(by_head.sizes());
      const auto halves = x.chunk(2, -1);
      return at::cat({halves[0] * rows.cos() - halves[1] * rows.sin(),
                      halves[1] * rows.cos() + halves[0] * rows.sin()},
                     -1);
    };
    return Tensors{prepare(t[0].slice(1, 0, q_end), shape.heads, 1),
                   prepare(t[0].slice(1, q_end, k_end), shape.kv_heads, 2),
                   t[0].slice(1, k_end, all).reshape({tokens, shape.kv_heads, shape.head_dim})};
  };
  Tensors inputs = {random({tokens, all}, 5)};
  if (norm != QkNorm::kNone)
    inputs.insert(inputs.end(), {random({q_width}, 6), random({k_width}, 7)});
  return {std::string("attention_inputs ") + name, inputs, op, reference};
}

// Sequences of several lengths; with `shared`, each begins with the same rows, which are read
// again.
OpCase attention_case(const char* name, AttentionShape shape, std::int64_t window, bool shared,
                      const std::vector<std::int32_t>& lengths = {1, 70, 33, 200}) {
  const std::int64_t prefix = shared ? 50 : 0;
  AttentionLayout layout;
  std::vector<std::int64_t> key_rows;
  layout.query_offsets = layout.key_offsets = {0};
  std::int32_t row = 0;
  for (std::size_t i = 0; i < lengths.size() + (shared ? 1 : 0); ++i) {
    const bool is_prefix = shared && i == 0;
    const std::int32_t length =
        is_prefix ? static_cast<std::int32_t>(prefix) : lengths[i - (shared ? 1 : 0)];
    if (shared && !is_prefix) {
      for (std::int64_t p = 0; p < prefix; ++p)
        key_rows.push_back(p);
    }
    for (std::int32_t p = 0; p < length; ++p)
      key_rows.push_back(row++);
    layout.query_offsets.push_back(row);
    layout.key_offsets.push_back(static_cast<std::int32_t>(key_rows.size()));
    layout.longest_query = std::max<std::int64_t>(layout.longest_query, length);
    layout.longest_key =
        std::max<std::int64_t>(layout.longest_key, length + (is_prefix ? 0 : prefix));
  }
  const std::int64_t tokens = row;
  const double scale = 1.0 / std::sqrt(static_cast<double>(shape.head_dim));
  const auto op = [=](const Tensors& t) {
    AttentionLayout there = layout;
    there.device_query_offsets = integers(layout.query_offsets, t[0]);
    there.device_key_offsets = integers(layout.key_offsets, t[0]);
    if (shared)
      there.key_rows =
          at::tensor(at::ArrayRef<std::int64_t>(key_rows), at::kLong).to(t[0].device());
    return Tensors{attention(t[0], t[1], t[2], there, window, scale, Gradients::kRecorded)};
  };
  const auto reference = [=](const Tensors& t) {
    const at::Tensor rows = at::tensor(at::ArrayRef<std::int64_t>(key_rows), at::kLong);
    const at::Tensor k = t[1].index_select(0, rows), v = t[2].index_select(0, rows);
    Tensors parts;
    for (std::size_t i = 0; i + 1 < layout.query_offsets.size(); ++i) {
      const auto part = [](const at::Tensor& x, std::int64_t begin, std::int64_t end) {
        return x.slice(0, begin, end).transpose(0, 1);  // [heads, tokens, head_dim]
      };
      const at::Tensor q_i = part(t[0], layout.query_offsets[i], layout.query_offsets[i + 1]);
      const std::int64_t group = shape.heads / shape.kv_heads;
      const at::Tensor k_i =
          part(k, layout.key_offsets[i], layout.key_offsets[i + 1]).repeat_interleave(group, 0);
      const at::Tensor v_i =
          part(v, layout.key_offsets[i], layout.key_offsets[i + 1]).repeat_interleave(group, 0);
      const std::int64_t queries = q_i.size(1), keys = k_i.size(1);
      const at::Tensor place = at::arange(queries).unsqueeze(1) + (keys - queries),
                       key = at::arange(keys).unsqueeze(0);
      at::Tensor hidden = key > place;
      if (window > 0) hidden = hidden.logical_or(key <= place - window);
      const at::Tensor scores =
          (at::matmul(q_i, k_i.transpose(1, 2)) * scale).masked_fill(hidden, -1e30);
      parts.push_back(at::matmul(scores.softmax(-1), v_i).transpose(0, 1));
    }
    return Tensors{at::cat(parts)};
  };
  return {std::string("attention ") + name,
          {random({tokens, shape.heads, shape.head_dim}, 8),
           random({tokens, shape.kv_heads, shape.head_dim}, 9),
           random({tokens, shape.kv_heads, shape.head_dim}, 10)},
          op,
          reference,
          /*not_on_gpu=*/{at::kFloat}};
}

}  // namespace

std::vector<OpCase> attention_cases() {
  const AttentionShape gqa{8, 2, 64}, mqa{4, 1, 128}, mha{3, 3, 16};
  return {attention_inputs_case("no norm", QkNorm::kNone, gqa),
          attention_inputs_case("head norm", QkNorm::kHead, gqa),
          attention_inputs_case("projection norm", QkNorm::kProjection, mha),
          attention_inputs_case("head norm, head_dim 64", QkNorm::kHead, {4, 2, 64}),
          attention_inputs_case("head norm, head_dim 128", QkNorm::kHead, {16, 8, 128}),
          attention_inputs_case("no norm, head_dim 128", QkNorm::kNone, {5, 1, 128}),
          attention_case("equal lengths", {4, 2, 128}, 0, false, {256, 256, 256}),
          attention_case("equal lengths, head_dim 64", {4, 4, 64}, 0, false, {512, 512}),
          attention_case("gqa", gqa, 0, false),
          attention_case("mqa, window 20", mqa, 20, false),
          attention_case("mha, head_dim 16", mha, 0, false),
          attention_case("gqa, shared prefix", gqa, 0, true),
          attention_case("gqa, shared prefix, window 60", gqa, 60, true)};
}

}  // namespace antisd::inline ops
