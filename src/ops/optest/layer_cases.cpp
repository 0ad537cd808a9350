// Norms, gated units, experts and the scores of tokens.
#include <fmt/format.h>

#include "ops/experts.h"
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

OpCase experts_case(bool normalise) {
  const std::int64_t tokens = 61, hidden = 64, width = 48, count = 8, k = 2;
  return {
      fmt::format("experts normalise={}", normalise),
      {random({tokens, hidden}, 13), random({count, hidden}, 14),
       random({count, 2 * width, hidden}, 15, 0.2), random({count, hidden, width}, 16, 0.2)},
      [=](const Tensors& t) {
        return Tensors{experts(t[0], {t[1], t[2], t[3]}, k, normalise)};
      },
      [=](const Tensors& t) {  // every expert on every token, with weight 0 if it was not chosen
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
          experts_case(false)};
}

}  // namespace antisd::inline ops
