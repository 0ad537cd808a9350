#include "trainer/sdpo_objective.h"

#include <ATen/ATen.h>

#include "algo/sdpo.h"
#include "core/check.h"

namespace antisd::inline trainer {
namespace {

std::vector<double> row_of(const at::Tensor& values, std::int64_t row) {  // fp64 on the CPU
  const std::int64_t width = values.size(1);
  const double* begin = values.const_data_ptr<double>() + row * width;
  return {begin, begin + width};
}

at::Tensor on_host(const at::Tensor& values) {
  return values.to(at::kCPU, at::kDouble).contiguous();
}

}  // namespace

Distillation distil(const at::Tensor& student_hidden, const at::Tensor& student_head,
                    const at::Tensor& teacher_hidden, const at::Tensor& teacher_head,
                    const DistillationOptions& options) {
  const at::NoGradGuard no_grad;
  const at::Tensor tokens = student_head.detach().narrow(0, 0, options.vocabulary);
  const at::Tensor teacher_tokens = teacher_head.detach().narrow(0, 0, options.vocabulary);
  const std::int64_t top_k = std::min(options.top_k, options.vocabulary - 1);
  Distillation result;
  result.hidden_gradient = at::empty_like(student_hidden);
  result.head_gradient = at::zeros(student_head.sizes(), student_head.options().dtype(at::kFloat));
  const auto log_probabilities = [&](const at::Tensor& hidden, const at::Tensor& head) {
    // fp32 output of the product, for all precisions of its operands. [block, vocabulary]
    const at::Tensor logits = hidden.scalar_type() == at::kFloat
                                  ? at::linear(hidden, head)
                                  : at::mm(hidden, head.t(), at::kFloat);
    return at::log_softmax(logits / options.temperature, -1);
  };
  for (std::int64_t begin = 0; begin < student_hidden.size(0); begin += options.block_tokens) {
    const std::int64_t count = std::min(options.block_tokens, student_hidden.size(0) - begin);
    const at::Tensor hidden = student_hidden.detach().narrow(0, begin, count);
    const at::Tensor student = log_probabilities(hidden, tokens);
    const auto [likeliest, ids] = student.topk(top_k, -1);
    const at::Tensor teacher =
        log_probabilities(teacher_hidden.narrow(0, begin, count), teacher_tokens).gather(1, ids);
    const at::Tensor p = on_host(likeliest), q = on_host(teacher);
    at::Tensor gradient = at::empty({count, top_k}, at::kDouble);  // of the k log-probabilities
    for (std::int64_t i = 0; i < count; ++i) {
      const SdpoLoss loss = sdpo_loss(row_of(p, i), row_of(q, i), options.alpha);
      result.loss.push_back(loss.loss);
      std::copy(loss.gradient.begin(), loss.gradient.end(),
                gradient.mutable_data_ptr<double>() + i * top_k);
    }
    gradient = (gradient / (static_cast<double>(options.mean_tokens) / options.gradient_scale))
                   .to(student.device(), at::kFloat);
    // With respect to the logits: through the log-softmax, divided by the temperature.
    at::Tensor logits = student.exp().mul_(-gradient.sum(1, /*keepdim=*/true));
    logits.scatter_add_(1, ids, gradient).div_(options.temperature);
    const at::Tensor rounded = logits.to(hidden.scalar_type());
    result.hidden_gradient.narrow(0, begin, count).copy_(at::matmul(rounded, tokens));
    result.head_gradient.narrow(0, 0, options.vocabulary).add_(at::matmul(rounded.t(), hidden));
  }
  return result;
}

Derivative SdpoObjective::differentiate(const PassView& pass) {
  Distillation distilled =
      distil(pass.hidden, model_.head().weight, pass.teacher_hidden, teacher_.head().weight,
             {.temperature = temperature_,
              .vocabulary = model_.shape().vocabulary,
              .top_k = method_.sdpo.top_k,
              .alpha = method_.sdpo.alpha,
              .mean_tokens = pass.mean.tokens,
              .gradient_scale = pass.scale});
  Derivative derivative{.loss = std::move(distilled.loss),
                        .by_hidden = distilled.hidden_gradient,
                        .by_head = distilled.head_gradient};
  if (!has_loss_terms(method_.loss)) return derivative;
  const float share = 1.0F / static_cast<float>(pass.mean.tokens);  // fp32, like the rest of SDPO
  auto loss = derivative.loss.begin();
  for (std::size_t s = 0; s < pass.sequences.size(); ++s) {
    for (const TokenLoss& token : terms_of(pass.sequences[s].number, pass.student[s]).tokens) {
      *loss++ += token.loss;
      derivative.by_logp.push_back(static_cast<float>(token.gradient) * share);
    }
  }
  return derivative;
}

void SdpoObjective::account(std::span<const TargetSequence> sequences,
                            const MicroBatchResult& result, MeanOver /*mean*/) {
  auto next = result.loss.begin();
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const std::vector<float>& logp = result.student[s].logp;
    TokenLosses losses;
    losses.loss.assign(next, next + std::ssize(logp));
    next += std::ssize(logp);
    if (has_loss_terms(method_.loss))
      losses.added = terms_of(sequences[s].number, result.student[s]).added;
    add_sums(sums, losses, result.student[s].entropy);
  }
}

SdpoObjective::Terms SdpoObjective::terms_of(std::size_t number, const TokenScores& student) const {
  const std::vector<float>& logp = student.logp;
  std::span<const float> reference;
  if (needs_reference(method_.loss)) {
    reference = batch_[number].reference.logp;
    ANTISD_CHECK_EQ(reference.size(), logp.size());
  }
  Terms terms;
  for (std::size_t i = 0; i < logp.size(); ++i) {
    TokenLoss token{0, 0};
    add_loss_terms(method_.loss,
                   {.logp = logp[i],
                    .reference = reference.empty() ? 0 : reference[i],
                    .entropy = student.entropy[i]},
                   token, terms.added);
    terms.tokens.push_back(token);
  }
  return terms;
}

}  // namespace antisd::inline trainer
