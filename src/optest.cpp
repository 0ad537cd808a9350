// antisd-optest: every op on every backend, values and gradients, against plain tensor arithmetic
// in double precision on the CPU. One line an op and backend; exit status 1 where any differs. On a
// machine without a GPU it checks the CPU alone and says so.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/error.h"
#include "ops/adamw.h"
#include "ops/attention.h"
#include "ops/attention_inputs.h"
#include "ops/device.h"
#include "ops/experts.h"
#include "ops/paged_attention.h"
#include "ops/rms_norm.h"
#include "ops/sampling.h"
#include "ops/squared_norms.h"
#include "ops/stream_norm.h"
#include "ops/swiglu.h"
#include "ops/token_scores.h"
#include "ops/uniform_noise.h"

namespace antisd {
namespace {

using Tensors = std::vector<at::Tensor>;
using OpFunction = std::function<Tensors(const Tensors&)>;

struct OpCase {
  std::string name;
  Tensors inputs;                               // double, on the CPU; each gets a gradient
  OpFunction op;                                // on the backend's device and precision
  OpFunction reference;                         // in double
  std::vector<at::ScalarType> not_on_gpu = {};  // precisions that the GPU path has no form of
};

struct Backend {
  at::Device device;
  at::ScalarType dtype;
  double tolerance;  // of the largest magnitude of each result
  std::string name() const {
    return fmt::format("{} {}", device.is_cuda() ? "cuda" : "cpu",
                       dtype == at::kFloat  ? "fp32"
                       : dtype == at::kHalf ? "fp16"
                                            : "bf16");
  }
};

// Outputs, then the gradients of their sum under fixed random weights.
Tensors values_and_gradients(const OpFunction& function, const Tensors& inputs) {
  Tensors leaves;
  for (const at::Tensor& input : inputs)
    leaves.push_back(input.detach().clone().requires_grad_(true));
  Tensors results = function(leaves);
  at::Tensor loss = at::zeros({}, at::kDouble);
  std::uint64_t seed = 1;
  for (const at::Tensor& result : results) {
    const at::Tensor weights =
        at::randn(result.sizes(), at::detail::createCPUGenerator(seed++), at::kDouble);
    loss = loss + (result.to(at::kCPU, at::kDouble) * weights).sum();
  }
  torch::autograd::backward({loss}, {});
  for (const at::Tensor& leaf : leaves)
    results.push_back(leaf.grad());
  for (at::Tensor& result : results)
    result = result.detach().to(at::kCPU, at::kDouble);
  return results;
}

// The largest error of any result in units of the tolerance.
double error_of(const OpCase& test, const Backend& backend) {
  Tensors rounded, moved;
  for (const at::Tensor& input : test.inputs) {
    moved.push_back(input.to(backend.dtype).to(backend.device));
    rounded.push_back(
        input.to(backend.dtype).to(at::kDouble));  // the reference sees the same rounded inputs
  }
  const Tensors results = values_and_gradients(test.op, moved);
  const Tensors expected = values_and_gradients(test.reference, rounded);
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double scale = std::max(expected[i].abs().max().item<double>(), 1e-3);
    const double difference = (results[i] - expected[i]).abs().max().item<double>();
    worst =
        std::max(worst, std::isfinite(difference) ? difference / scale / backend.tolerance : 1e9);
  }
  return worst;
}

at::Tensor random(std::vector<std::int64_t> sizes, std::uint64_t seed, double scale = 1) {
  return at::randn(sizes, at::detail::createCPUGenerator(seed), at::kDouble) * scale;
}

at::Tensor integers(std::vector<std::int32_t> values, const at::Tensor& like) {
  return at::tensor(at::ArrayRef<std::int32_t>(values), at::kInt).to(like.device());
}

at::Tensor plain_rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return x * (x.square().mean(-1, true) + eps).rsqrt() * weight;
}

OpCase rms_norm_case(std::int64_t rows, std::int64_t width) {
  return {fmt::format("rms_norm {}x{}", rows, width),
          {random({rows, width}, 1), random({width}, 2)},
          [](const Tensors& t) { return Tensors{rms_norm(t[0], t[1], 1e-6)}; },
          [](const Tensors& t) { return Tensors{plain_rms_norm(t[0], t[1], 1e-6)}; }};
}

// An fp32 stream into the backend's precision.
OpCase wide_rms_norm_case(std::int64_t rows, std::int64_t width) {
  return {fmt::format("rms_norm of an fp32 stream {}x{}", rows, width),
          {random({rows, width}, 44), random({width}, 45)},
          [](const Tensors& t) { return Tensors{rms_norm(t[0].to(at::kFloat), t[1], 1e-6)}; },
          [](const Tensors& t) { return Tensors{plain_rms_norm(t[0], t[1], 1e-6)}; }};
}

// The stream, a product added to it (or none), and the norm of the sum; both results are used.
OpCase add_and_norm_case(std::int64_t rows, std::int64_t width, bool with_product, bool with_bias) {
  const std::int64_t inner = 48;
  const auto product = [=](const Tensors& t) {
    if (!with_product) return StreamProduct{};
    return StreamProduct{t[2], t[3], with_bias ? t[4] : at::Tensor()};
  };
  Tensors inputs = {random({rows, width}, 46), random({width}, 47)};
  if (with_product)
    inputs.insert(inputs.end(), {random({rows, inner}, 48), random({width, inner}, 49, 0.2)});
  if (with_bias) inputs.push_back(random({width}, 50));
  return {fmt::format("add_and_norm {}x{}{}{}", rows, width, with_product ? ", product" : "",
                      with_bias ? ", bias" : ""),
          inputs,
          [=](const Tensors& t) {
            const StreamNorm next = add_and_norm(t[0].to(at::kFloat), product(t), t[1], 1e-6);
            return Tensors{next.stream, next.normed};
          },
          [=](const Tensors& t) {
            at::Tensor stream = t[0];
            if (with_product) stream = stream + at::mm(t[2], t[3].t());
            if (with_bias) stream = stream + t[4];
            return Tensors{stream, plain_rms_norm(stream, t[1], 1e-6)};
          }};
}

OpCase swiglu_case(std::int64_t rows, std::int64_t width) {
  return {fmt::format("swiglu {}x{}", rows, width),
          {random({rows, 2 * width}, 3, 3)},
          [](const Tensors& t) { return Tensors{swiglu(t[0])}; },
          [](const Tensors& t) {
            const auto parts = t[0].chunk(2, -1);
            return Tensors{at::silu(parts[0]) * parts[1]};
          }};
}

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
    return Tensors{attention(t[0], t[1], t[2], there, window, scale)};
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

OpCase token_scores_case(const char* name, std::int64_t tokens, std::int64_t vocabulary,
                         std::int64_t padding, double temperature, ScoreBlocks blocks) {
  std::vector<std::int32_t> targets;
  for (std::int64_t i = 0; i < tokens; ++i)
    targets.push_back(static_cast<std::int32_t>((i * 7919) % vocabulary));
  const std::int64_t width = 64;
  return {std::string("token_scores ") + name,
          {random({tokens, width}, 11), random({vocabulary + padding, width}, 12, 0.25)},
          [=](const Tensors& t) {
            const auto scores =
                token_scores(t[0].contiguous(), t[1].contiguous(), integers(targets, t[0]),
                             temperature, vocabulary, blocks);
            return Tensors{scores.logp, scores.entropy};
          },
          [=](const Tensors& t) {
            const at::Tensor logp =
                (at::mm(t[0], t[1].slice(0, 0, vocabulary).t()) / temperature).log_softmax(-1);
            const at::Tensor picked = integers(targets, t[0]).to(at::kLong).unsqueeze(1);
            return Tensors{logp.gather(1, picked).squeeze(1), -(logp.exp() * logp).sum(-1)};
          }};
}

OpCase experts_case(bool normalise) {
  const std::int64_t tokens = 61, hidden = 64, width = 48, count = 8, k = 2;
  return {
      fmt::format("experts normalise={}", normalise),
      {random({tokens, hidden}, 13), random({count, hidden}, 14),
       random({count, 2 * width, hidden}, 15, 0.2), random({count, hidden, width}, 16, 0.2)},
      [=](const Tensors& t) {
        return Tensors{experts(t[0], {t[1], t[2], t[3]}, k, normalise)};
      },
      [=](const Tensors& t) {  // every expert on every token, weighted by 0 where it was not chosen
        const at::Tensor p = at::mm(t[0], t[1].t()).softmax(-1);
        const at::Tensor chosen = at::zeros_like(p).scatter(1, std::get<1>(p.topk(k, -1)), 1.0);
        at::Tensor weights = p * chosen;
        if (normalise) weights = weights / weights.sum(-1, true);
        at::Tensor out = at::zeros_like(t[0]);
        for (std::int64_t e = 0; e < count; ++e) {
          const auto parts = at::mm(t[0], t[2][e].t()).chunk(2, -1);
          out = out + weights.select(1, e).unsqueeze(1) *
                          at::mm(at::silu(parts[0]) * parts[1], t[3][e].t());
        }
        return Tensors{out};
      },
      /*not_on_gpu=*/{at::kFloat, at::kHalf}};
}

// Sampling noise must agree bit for bit with CounterRng; 0 or a large number.
double uniform_noise_error(at::Device device) {
  const CounterRng rng(11, RandomStream::kSampling);
  const at::Tensor places = at::randint(0, 1 << 30, {10'007, 4}, at::kInt);
  const at::Tensor result = uniform_noise(rng, places.to(device)).to(at::kCPU);
  double different = 0;
  for (std::int64_t row = 0; row < places.size(0); ++row) {
    const auto* p = places.const_data_ptr<std::int32_t>() + row * 4;
    const auto word = [&](int i) { return static_cast<std::uint32_t>(p[i]); };
    const double expected =
        rng.uniform({.step = word(3), .prompt = word(2), .sample = word(1), .position = word(0)});
    if (result.const_data_ptr<double>()[row] != expected) ++different;
  }
  return different * 2;
}

// Three steps of AdamW, their result beside the textbook formula in double. Moments and masters
// are fp32 on every backend, so the tolerance is fp32's; a 16-bit weight is its master, rounded.
double adamw_error(const Backend& backend, std::int64_t count) {
  const AdamWSettings settings{.lr = 1e-2, .weight_decay = 0.1};
  const bool has_master = backend.dtype != at::kFloat;
  at::Tensor weight = random({count}, 17).to(backend.dtype).to(backend.device);
  at::Tensor master = weight.to(at::kFloat, false, /*copy=*/true);
  at::Tensor first = at::zeros_like(master), second = at::zeros_like(master);
  at::Tensor w = weight.to(at::kCPU, at::kDouble), m = at::zeros_like(w), v = at::zeros_like(w);
  for (int t = 1; t <= 3; ++t) {
    const at::Tensor gradient =
        random({count}, 17 + static_cast<std::uint64_t>(t), 0.1).to(backend.dtype);
    adamw_step(
        {weight, has_master ? master : at::Tensor(), gradient.to(backend.device), first, second},
        adamw_factors(settings, t, 0.5));
    const at::Tensor g = gradient.to(at::kDouble) * 0.5;
    m = m * settings.beta1 + g * (1 - settings.beta1);
    v = v * settings.beta2 + g * g * (1 - settings.beta2);
    const at::Tensor denominator = (v / (1 - std::pow(settings.beta2, t))).sqrt() + settings.eps;
    w = w - settings.lr *
                (m / (1 - std::pow(settings.beta1, t)) / denominator + settings.weight_decay * w);
  }
  if (has_master && !weight.equal(master.to(backend.dtype))) return 1e9;
  const auto error = [](const at::Tensor& result, const at::Tensor& expected) {
    const at::Tensor difference = (result.to(at::kCPU, at::kDouble) - expected).abs();
    return difference.max().item<double>() / expected.abs().max().item<double>() / 2e-6;
  };
  return std::max({error(has_master ? master : weight, w), error(first, m), error(second, v)});
}

double squared_norms_error(const Backend& backend) {
  const Tensors values = {random({1001}, 21).to(backend.dtype),
                          random({300, 700}, 22, 1e-3).to(backend.dtype)};
  Tensors moved;
  for (const at::Tensor& value : values)
    moved.push_back(value.to(backend.device));
  const std::vector<double> squares = fetch_squared_norms(moved);
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double expected = values[i].to(at::kDouble).square().sum().item<double>();
    worst = std::max(worst, std::abs(squares[i] - expected) / expected / 1e-5);
  }
  return worst;
}

// Sequences of several lengths whose pages lie in the cache in disorder; keys and values get there
// through store_kv. The largest error in units of the tolerance.
double decode_attention_error(AttentionShape shape, std::int64_t window, const Backend& backend) {
  const std::vector<std::int32_t> lengths = {1, 32, 33, 70, 31, 1500, 200, 64, 700};
  const auto sequences = static_cast<std::int64_t>(lengths.size());
  const std::int64_t most_pages = 48, pages = sequences * most_pages;
  const auto rounded = [&](const at::Tensor& x) { return x.to(backend.dtype).to(at::kDouble); };
  const at::Tensor q = rounded(random({sequences, shape.heads, shape.head_dim}, 21));
  at::Tensor table = at::empty({sequences, most_pages}, at::kInt);
  for (std::int64_t i = 0; i < pages; ++i)
    table.view({-1})[i] = static_cast<std::int32_t>((i * 17 + 5) % pages);  // 17 and 432: no factor
  const auto there = at::TensorOptions().device(backend.device).dtype(backend.dtype);
  const std::vector<std::int64_t> sizes = {pages, kPageTokens, shape.kv_heads, shape.head_dim};
  const double nan = std::nan("");  // what nobody stored must not be read
  const PagedKv kv{at::full(sizes, nan, there), at::full(sizes, nan, there)};
  const double scale = 1.0 / std::sqrt(static_cast<double>(shape.head_dim));
  Tensors expected;
  for (std::int64_t s = 0; s < sequences; ++s) {
    const std::int64_t length = lengths[s], group = shape.heads / shape.kv_heads;
    const at::Tensor k = rounded(random({length, shape.kv_heads, shape.head_dim}, 30 + s));
    const at::Tensor v = rounded(random({length, shape.kv_heads, shape.head_dim}, 50 + s));
    std::vector<std::int64_t> slots;
    for (std::int64_t i = 0; i < length; ++i)
      slots.push_back(table[s][i / kPageTokens].item<std::int64_t>() * kPageTokens +
                      i % kPageTokens);
    store_kv(k.to(there), v.to(there),
             at::tensor(at::ArrayRef<std::int64_t>(slots), at::kLong).to(backend.device), kv);
    const std::int64_t first = window > 0 ? std::max<std::int64_t>(0, length - window) : 0;
    const auto seen = [&](const at::Tensor& x) {  // [heads, keys, head_dim]
      return x.slice(0, first).repeat_interleave(group, 1).transpose(0, 1);
    };
    const at::Tensor scores = at::matmul(q[s].unsqueeze(1), seen(k).transpose(1, 2)) * scale;
    expected.push_back(at::matmul(scores.softmax(-1), seen(v)).squeeze(1));
  }
  const at::Tensor out = decode_attention(
      q.to(there), kv, {table.to(backend.device), integers(lengths, kv.keys)}, window, scale);
  const at::Tensor reference = at::stack(expected);
  const double difference = (out.to(at::kCPU, at::kDouble) - reference).abs().max().item<double>();
  const double largest = reference.abs().max().item<double>();
  return std::isfinite(difference) ? difference / largest / backend.tolerance : 1e9;
}

// Tokens whose cumulative range misses the noise by more than rounding, or log-probabilities that
// are off.
double sample_error(const SamplingSettings& settings, at::Device device) {
  const std::int64_t rows = 64, vocabulary = 3001, padding = 7;
  const at::Tensor logits = random({rows, vocabulary + padding}, 70, 2).to(at::kFloat);
  const at::Tensor noise = at::rand({rows}, at::detail::createCPUGenerator(71), at::kDouble);
  const SampledTokens sampled = sample(logits.to(device), vocabulary, settings, noise.to(device));
  const at::Tensor ids = sampled.ids.to(at::kCPU), logp = sampled.logp.to(at::kCPU),
                   raw = sampled.raw_logp.to(at::kCPU);
  double worst = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const at::Tensor z = logits[row].slice(0, 0, vocabulary).to(at::kDouble);
    const auto id = ids[row].item<std::int64_t>();
    const auto off = [&](double a, double b) { worst = std::max(worst, std::abs(a - b) / 1e-4); };
    off(raw[row].item<double>(), z.log_softmax(0)[id].item<double>());
    if (settings.temperature == 0) {
      if (id != z.argmax().item<std::int64_t>()) return 1e9;
      continue;
    }
    const auto order = std::get<1>(z.sort(/*stable=*/true, 0, /*descending=*/true));
    at::Tensor weights = (z / settings.temperature).softmax(0);
    const auto keep_first = [&](std::int64_t count) {
      weights = weights.index_fill(0, order.slice(0, count), 0);
      weights = weights / weights.sum();
    };
    if (settings.top_k > 0) keep_first(settings.top_k);
    if (settings.top_p < 1)
      keep_first(
          (weights.index_select(0, order).cumsum(0) < settings.top_p).sum().item<std::int64_t>() +
          1);
    weights = weights.masked_fill(weights < settings.min_p * weights.max(), 0);
    weights = weights / weights.sum();
    off(logp[row].item<double>(), weights[id].log().item<double>());
    const double after = weights.slice(0, 0, id + 1).sum().item<double>();
    const double u = noise[row].item<double>();
    if (u > after + 1e-4 || u < after - weights[id].item<double>() - 1e-4) return 1e9;
  }
  return worst;
}

std::vector<OpCase> all_cases() {
  const AttentionShape gqa{8, 2, 64}, mqa{4, 1, 128}, mha{3, 3, 16};
  return {rms_norm_case(37, 96),
          rms_norm_case(601, 128),
          rms_norm_case(300, 1024),
          rms_norm_case(5, 7),
          rms_norm_case(290, 4104),
          wide_rms_norm_case(700, 1024),
          wide_rms_norm_case(37, 2560),
          wide_rms_norm_case(3, 12),
          add_and_norm_case(700, 1024, false, false),
          add_and_norm_case(37, 2560, true, false),
          add_and_norm_case(300, 1024, true, true),
          add_and_norm_case(5, 12, true, true),
          swiglu_case(29, 40),
          swiglu_case(301, 1000),
          swiglu_case(3, 5),
          attention_inputs_case("no norm", QkNorm::kNone, gqa),
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
          attention_case("gqa, shared prefix, window 60", gqa, 60, true),
          token_scores_case("small blocks", 50, 1003, 0, 1.0, {7, 120}),
          token_scores_case("padded vocabulary, temperature 0.6", 50, 1000, 24, 0.6, {}),
          token_scores_case("many", 1500, 9001, 7, 1.0, {}),
          experts_case(true),
          experts_case(false)};
}

int run_op_tests() {
  const TensorLibraryInfo library = describe_tensor_library();
  std::vector<Backend> backends = {{at::kCPU, at::kFloat, 2e-5}};
  std::vector<at::Device> devices = {at::kCPU};
  if (library.gpus.empty()) {
    fmt::print("no GPU here ({}): CPU alone\n",
               library.built_with_cuda ? library.gpu_problem : "built without CUDA");
  } else {
    const at::Device gpu(at::kCUDA, 0);
    devices.push_back(gpu);
    // fp32 products may run in TF32-free fp32; bf16 has 8 bits of mantissa and rounds every stored
    // value.
    backends.push_back({gpu, at::kFloat, 1e-4});
    backends.push_back({gpu, at::kBFloat16, 3e-2});
    // 11 bits, so an eighth of that; below 6e-5 fp16 rounds to steps of 6e-8, which none of the
    // results is small enough to show.
    at::globalContext().setAllowFP16ReductionCuBLAS(/*allow_reduced_precision=*/false);
    backends.push_back({gpu, at::kHalf, 3e-2 / 8});
    fmt::print("cuda:0: {}\n", library.gpus[0].description);
  }
  int failed = 0, passed = 0;
  const auto report = [&](const std::string& name, const std::string& backend, double error) {
    const bool good = error <= 1;
    ++(good ? passed : failed);
    fmt::print("{:<6} {:<48} {:<10} error {:.3g} of its tolerance\n", good ? "ok" : "FAILED", name,
               backend, error);
  };
  for (const at::Device& device : devices)
    report("uniform_noise", device.str(), uniform_noise_error(device));
  std::vector<Backend> optimizer_backends = backends;
  optimizer_backends.push_back({at::kCPU, at::kBFloat16, 0});
  for (const Backend& backend : optimizer_backends) {
    for (const std::int64_t count : {std::int64_t{5}, std::int64_t{40'007}, std::int64_t{1} << 20})
      report(fmt::format("adamw {}", count), backend.name(), adamw_error(backend, count));
    report("squared_norms", backend.name(), squared_norms_error(backend));
  }
  const auto guarded = [&](const std::string& name, const std::string& backend,
                           const std::function<double()>& error) {
    try {
      report(name, backend, error());
    } catch (const std::exception& problem) {
      ++failed;
      fmt::print("FAILED {:<48} {:<10} {}\n", name, backend,
                 std::string(problem.what()).substr(0, 300));
    }
  };
  for (const auto& [name, shape, window] :
       std::vector<std::tuple<std::string, AttentionShape, std::int64_t>>{
           {"decode_attention gqa 8/2x64", {8, 2, 64}, 0},
           {"decode_attention gqa 8/2x64, window 40", {8, 2, 64}, 40},
           {"decode_attention mqa 4/1x128", {4, 1, 128}, 0},
           {"decode_attention gqa 32/8x128, window 64", {32, 8, 128}, 64},
           {"decode_attention mha 6x32", {6, 6, 32}, 0},
           {"decode_attention mha 3x16, window 5", {3, 3, 16}, 5}}) {
    for (const Backend& backend : backends) {
      guarded(name, backend.name(), [&] { return decode_attention_error(shape, window, backend); });
    }
  }
  for (const auto& [name, settings] : std::vector<std::pair<std::string, SamplingSettings>>{
           {"sample", {}},
           {"sample greedy", {.temperature = 0}},
           {"sample temperature 0.6", {.temperature = 0.6}},
           {"sample top-p 0.9", {.top_p = 0.9}},
           {"sample top-k 50", {.top_k = 50}},
           {"sample min-p 0.1", {.min_p = 0.1}},
           {"sample all filters",
            {.temperature = 0.7, .top_p = 0.8, .min_p = 0.05, .top_k = 40}}}) {
    for (const at::Device& device : devices)
      guarded(name, device.str(), [&] { return sample_error(settings, device); });
  }
  for (const OpCase& test : all_cases()) {
    for (const Backend& backend : backends) {
      const auto& absent = test.not_on_gpu;
      if (backend.device.is_cuda() &&
          std::find(absent.begin(), absent.end(), backend.dtype) != absent.end())
        continue;
      guarded(test.name, backend.name(), [&] { return error_of(test, backend); });
    }
  }
  fmt::print("{} passed, {} failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace antisd

int main() {
  try {
    return antisd::run_op_tests();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "antisd-optest: %s\n", error.what());
    return 1;
  }
}
