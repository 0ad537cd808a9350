// Norms, gated units, experts and the scores of tokens.
#include <fmt/format.h>

#include "ops/experts.h"
#include "ops/lora.h"
#include "ops/optest/op_case.h"
#include "ops/rms_norm.h"
#include "ops/stream_norm.h"
#include "ops/swiglu.h"
#include "ops/token_scores.h"

namespace antisd::inline ops {
namespace {

OpCase rms_norm_case(std::int64_t rows, std::int64_t width) {
  return {fmt::format("rms_norm {}x{}", rows, width),
          {random({rows, width}, 1), random({width}, 2)},
          [](const Tensors& t) { return Tensors{rms_norm(t[0], t[1], 1e-6)}; },
          [](const Tensors& t) { return Tensors{plain_rms_norm(t[0], t[1], 1e-6)}; }};
}

// An fp32 stream normed into the backend's precision.
OpCase wide_rms_norm_case(std::int64_t rows, std::int64_t width) {
  return {fmt::format("rms_norm of an fp32 stream {}x{}", rows, width),
          {random({rows, width}, 44), random({width}, 45)},
          [](const Tensors& t) { return Tensors{rms_norm(t[0].to(at::kFloat), t[1], 1e-6)}; },
          [](const Tensors& t) { return Tensors{plain_rms_norm(t[0], t[1], 1e-6)}; }};
}

// The stream, an optional product added to it, and the norm of the sum; both results are used.
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
                             temperature, vocabulary, Gradients::kRecorded, blocks);
            return Tensors{scores.logp, scores.entropy};
          },
          [=](const Tensors& t) {
            const at::Tensor logp =
                (at::mm(t[0], t[1].slice(0, 0, vocabulary).t()) / temperature).log_softmax(-1);
            const at::Tensor picked = integers(targets, t[0]).to(at::kLong).unsqueeze(1);
            return Tensors{logp.gather(1, picked).squeeze(1), -(logp.exp() * logp).sum(-1)};
          }};
}

// Every expert on every token, with weight 0 if it was not chosen.
at::Tensor plain_experts(const at::Tensor& x, const at::Tensor& router, const at::Tensor& gate_up,
                         const at::Tensor& down, std::int64_t k, bool normalise) {
  const at::Tensor p = at::mm(x, router.t()).softmax(-1);
  const at::Tensor chosen = at::zeros_like(p).scatter(1, std::get<1>(p.topk(k, -1)), 1.0);
  at::Tensor weights = p * chosen;
  if (normalise) weights = weights / weights.sum(-1, true);
  at::Tensor out = at::zeros_like(x);
  for (std::int64_t e = 0; e < router.size(0); ++e) {
    const auto parts = at::mm(x, gate_up[e].t()).chunk(2, -1);
    out = out +
          weights.select(1, e).unsqueeze(1) * at::mm(at::silu(parts[0]) * parts[1], down[e].t());
  }
  return out;
}

// Two adapters of a weight with three parts, added to a product in its place and to an fp32 stream.
OpCase lora_case(std::int64_t tokens, std::int64_t in, std::int64_t rank) {
  const std::int64_t first = 32, between = 16, last = 48, out = first + between + last;
  const double scale = 1.5;
  const auto weights = [=](const Tensors& t) {
    return LoraWeights{t[2], t[3], {{0, first}, {first + between, last}}, scale};
  };
  return {
      fmt::format("add_lora {}x{}, rank {}", tokens, in, rank),
      {random({tokens, out}, 51), random({tokens, in}, 52),
       random({2 * rank, in}, 53, in < 100 ? 0.2 : 0.02), random({first + last, rank}, 54, 0.2)},
      [=](const Tensors& t) {
        return Tensors{add_lora(t[0] * 1, t[1], weights(t), LoraSum::kInPlace),
                       add_lora(t[0].to(at::kFloat), t[1], weights(t), LoraSum::kNew)};
      },
      [=](const Tensors& t) {
        const auto part = [&](std::int64_t i, std::int64_t row, std::int64_t rows) {
          return scale *
                 t[1].mm(t[2].narrow(0, i * rank, rank).t()).mm(t[3].narrow(0, row, rows).t());
        };
        const at::Tensor sum =
            t[0] + at::cat({part(0, 0, first), at::zeros({tokens, between}, t[0].options()),
                            part(1, first, last)},
                           1);
        return Tensors{sum, sum};
      }};
}

// Experts with adapters are experts with other weights.
OpCase adapted_experts_case() {
  const std::int64_t tokens = 61, hidden = 64, width = 48, count = 8, k = 2, rank = 8;
  const double scale = 0.5;
  return {"experts with adapters",
          {random({tokens, hidden}, 13), random({count, hidden}, 14),
           random({count, 2 * width, hidden}, 15, 0.2), random({count, hidden, width}, 16, 0.2),
           random({count, rank, hidden}, 55, 0.2), random({count, width, rank}, 56, 0.2),
           random({count, rank, width}, 57, 0.2), random({count, hidden, rank}, 58, 0.2)},
          [=](const Tensors& t) {  // of up alone, and of down
            const LoraWeights up{t[4], t[5], {{width, width}}, scale};
            const LoraWeights down{t[6], t[7], {{0, hidden}}, scale};
            return Tensors{experts(t[0], {t[1], t[2], t[3], {}, {}, &up, &down}, k, false)};
          },
          [=](const Tensors& t) {
            const at::Tensor gate_up =
                t[2] +
                at::cat({at::zeros_like(t[2].narrow(1, 0, width)), scale * at::bmm(t[5], t[4])}, 1);
            const at::Tensor down = t[3] + scale * at::bmm(t[7], t[6]);
            return Tensors{plain_experts(t[0], t[1], gate_up, down, k, /*normalise=*/false)};
          },
          /*not_on_gpu=*/{at::kFloat}};
}

OpCase experts_case(bool normalise) {
  const std::int64_t tokens = 61, hidden = 64, width = 48, count = 8, k = 2;
  return {fmt::format("experts normalise={}", normalise),
          {random({tokens, hidden}, 13), random({count, hidden}, 14),
           random({count, 2 * width, hidden}, 15, 0.2), random({count, hidden, width}, 16, 0.2)},
          [=](const Tensors& t) {
            return Tensors{experts(t[0], {t[1], t[2], t[3]}, k, normalise)};
          },
          [=](const Tensors& t) {
            return Tensors{plain_experts(t[0], t[1], t[2], t[3], k, normalise)};
          },
          /*not_on_gpu=*/{at::kFloat}};
}

}  // namespace

std::vector<OpCase> layer_cases() {
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
          token_scores_case("small blocks", 50, 1003, 0, 1.0, {7, 120}),
          token_scores_case("padded vocabulary, temperature 0.6", 50, 1000, 24, 0.6, {}),
          token_scores_case("many", 1500, 9001, 7, 1.0, {}),
          experts_case(true),
          experts_case(false),
          lora_case(70, 64, 16),
          lora_case(1, 48, 4),
          lora_case(300, 40, 3),
          lora_case(256, 1024, 8),
          lora_case(37, 2560, 32),
          lora_case(16, 12'288, 64),
          lora_case(8, 64, 128),
          adapted_experts_case()};
}

}  // namespace antisd::inline ops
