// What goes into attention, and attention over packed sequences.
#include <cmath>
#include <optional>

#include "ops/attention_inputs.h"
#include "ops/optest/attention_layout.h"
#include "ops/optest/op_case.h"
#include "ops/ragged_runs.h"

#ifdef ANTISD_CUDA
#include "ops/cuda_ragged_attention.h"
#endif

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

// How a case is computed on a GPU: `limits` cut the backward pass of cuDNN's ragged path.
struct AttentionCaseOptions {
  std::int64_t window = 0;
  std::int32_t prefix = 0;
  std::vector<std::int32_t> lengths = {1, 70, 33, 200};
  std::optional<RaggedLimits> limits = {};
};

OpCase attention_case(const char* name, AttentionShape shape,
                      const AttentionCaseOptions& options = {}) {
  const TestLayout test = test_layout(options.lengths, options.prefix);
  const AttentionLayout& layout = test.layout;
  const std::vector<std::int64_t>& key_rows = test.key_rows;
  const std::int64_t tokens = test.tokens, window = options.window;
  const double scale = 1.0 / std::sqrt(static_cast<double>(shape.head_dim));
  const auto op = [=](const Tensors& t) {
    const AttentionLayout there = test.on(t[0].device());
#ifdef ANTISD_CUDA
    if (options.limits && t[0].is_cuda())
      ragged_tables(there, {shape.heads, shape.kv_heads, shape.head_dim}, t[0].device(),
                    *options.limits);
#endif
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
          attention_case("equal lengths", {4, 2, 128}, {.lengths = {256, 256, 256}}),
          attention_case("equal lengths, head_dim 64", {4, 4, 64}, {.lengths = {512, 512}}),
          attention_case("gqa", gqa),
          attention_case("mqa, window 20", mqa, {.window = 20}),
          attention_case("mha, head_dim 16", mha),
          attention_case("gqa, shared prefix", gqa, {.prefix = 50}),
          attention_case("gqa, shared prefix, window 60", gqa, {.window = 60, .prefix = 50})};
}

// Long enough for cuDNN's ragged path where there is one: a length of 1, lengths that end within a
// tile and at its end, more sequences than a power of two.
std::vector<OpCase> ragged_attention_cases() {
  const AttentionShape gqa{8, 2, 64}, mqa{4, 1, 128}, mha{3, 3, 128}, odd{6, 2, 128};
  const std::vector<std::int32_t> lengths = {1, 600, 33, 200, 640};
  std::vector<std::int32_t> many = {700};
  for (std::int32_t i = 0; i < 40; ++i)
    many.push_back(1 + i * 7 % 45);
  // Calls of one head and one sequence; and none, so that flash attention goes backward.
  const RaggedLimits small{.bytes = 1 << 20}, none{.bytes = 0, .longest_bytes = 0};
  // Two sequences of 256 and all heads, so that some runs have a prefix and some have not.
  const RaggedLimits medium{.bytes = 12 << 20};
  return {attention_case("ragged, gqa", gqa, {.lengths = lengths}),
          attention_case("ragged, one sequence", odd, {.lengths = {777}}),
          attention_case("ragged, mqa, head_dim 128", mqa, {.lengths = lengths}),
          attention_case("ragged, mha, 3 heads", mha, {.lengths = lengths}),
          attention_case("ragged, window 100", odd, {.window = 100, .lengths = lengths}),
          attention_case("ragged, window 2", gqa, {.window = 2, .lengths = lengths}),
          attention_case("ragged, many sequences", gqa, {.lengths = many}),
          attention_case("ragged, shared prefix", odd, {.prefix = 300, .lengths = lengths}),
          attention_case("ragged, prefix, window 150", gqa,
                         {.window = 150, .prefix = 300, .lengths = lengths}),
          attention_case("ragged, one head at a time", odd,
                         {.prefix = 300, .lengths = lengths, .limits = small}),
          attention_case("ragged, some runs", gqa,
                         {.prefix = 300, .lengths = lengths, .limits = medium}),
          attention_case("ragged, flash attention backward", odd,
                         {.prefix = 300, .lengths = lengths, .limits = none})};
}

}  // namespace antisd::inline ops
