#include "ops/optest/value_checks.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/rng.h"
#include "ops/adamw.h"
#include "ops/paged_attention.h"
#include "ops/squared_norms.h"
#include "ops/uniform_noise.h"

namespace antisd::inline ops {

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
  const std::vector<std::vector<double>> squares = fetch_partial_squares(moved);
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double expected = values[i].to(at::kDouble).square().sum().item<double>();
    const double sum = std::accumulate(squares[i].begin(), squares[i].end(), 0.0);
    worst = std::max(worst, std::abs(sum - expected) / expected / 1e-5);
  }
  return worst;
}

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
  const double nan = std::nan("");  // values that were never stored must not be read
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

at::Tensor sampled_logits(LogitKind kind, std::int64_t rows, std::int64_t columns) {
  const at::Tensor normal = random({rows, columns}, 70, 2).to(at::kFloat);
  switch (kind) {
    case LogitKind::kNormal:
      return normal;
    case LogitKind::kFlat:  // as of a model that was never trained
      return normal * 0.002 - 7;
    case LogitKind::kPeaked: {  // as of a trained one: few tokens hold the mass
      const at::Tensor rank = at::arange(columns, at::kFloat) * 7919 % columns;
      return normal - 3 * (rank + 1).log().unsqueeze(0);
    }
    case LogitKind::kTwoValues:
      return (normal > 0).to(at::kFloat) - 0.5;
    case LogitKind::kEqual:
      break;
  }
  return at::full_like(normal, -1.25);
}

double sample_error(const SamplingSettings& settings, LogitKind kind, std::int64_t rows,
                    std::int64_t vocabulary, at::Device device) {
  const std::int64_t padding = 7;
  const at::Tensor logits = sampled_logits(kind, rows, vocabulary + padding).contiguous();
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

}  // namespace antisd::inline ops
