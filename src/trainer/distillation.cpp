#include "trainer/distillation.h"

#include <cmath>

#include <ATen/ATen.h>

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

// Of a block of tokens: log-probabilities of student and teacher, fp32 [block, vocabulary].
struct Block {
  at::Tensor student, teacher;
  std::int64_t count() const { return student.size(0); }
};

// The gradient of a block's logits / temperature, divided by `divisor`, for each choice of tokens.
// Losses are appended.
at::Tensor by_logits_on_students_top(const Block& block, const DivergenceRules& rules,
                                     std::int64_t top_k, double divisor,
                                     std::vector<double>& losses) {
  const auto [likeliest, ids] = block.student.topk(top_k, -1);
  const at::Tensor p = on_host(likeliest), q = on_host(block.teacher.gather(1, ids));
  at::Tensor gradient = at::empty({block.count(), top_k}, at::kDouble);  // of log-probabilities
  for (std::int64_t i = 0; i < block.count(); ++i) {
    const SdpoLoss loss = sdpo_loss(row_of(p, i), row_of(q, i), rules.alpha);
    losses.push_back(loss.loss);
    std::copy(loss.gradient.begin(), loss.gradient.end(),
              gradient.mutable_data_ptr<double>() + i * top_k);
  }
  gradient = (gradient / divisor).to(block.student.device(), at::kFloat);
  // With respect to the logits: through the log-softmax.
  at::Tensor logits = block.student.exp().mul_(-gradient.sum(1, /*keepdim=*/true));
  return logits.scatter_add_(1, ids, gradient);
}

// The probability outside of `ids`, added up: a difference from 1 would be only rounding where it
// is small. [block, 1]
at::Tensor rest_of(const at::Tensor& logp, const at::Tensor& ids) {
  return logp.exp().scatter_(1, ids, 0).sum(1, /*keepdim=*/true, at::kDouble);
}

at::Tensor by_logits_on_teachers_top(const Block& block, const DivergenceRules& rules,
                                     std::int64_t top_k, double divisor,
                                     std::vector<double>& losses) {
  const auto [likeliest, ids] = block.teacher.topk(top_k, -1);
  const at::Tensor student_rest = rest_of(block.student, ids);
  const auto buckets = [](const at::Tensor& logp, const at::Tensor& rest) {
    return on_host(at::cat({logp.to(at::kDouble).exp(), rest}, 1));
  };
  const at::Tensor p = buckets(block.student.gather(1, ids), student_rest),
                   q = buckets(likeliest, rest_of(block.teacher, ids));
  at::Tensor gradient = at::empty({block.count(), top_k + 1}, at::kDouble);  // of buckets' logits
  for (std::int64_t i = 0; i < block.count(); ++i) {
    const BucketLoss loss = bucket_loss(row_of(p, i), row_of(q, i), rules);
    losses.push_back(loss.loss);
    std::copy(loss.by_logit.begin(), loss.by_logit.end(),
              gradient.mutable_data_ptr<double>() + i * (top_k + 1));
  }
  gradient = (gradient / divisor).to(block.student.device());
  // Tokens of the rest share its gradient by their probability.
  const at::Tensor share =
      gradient.narrow(1, top_k, 1) / student_rest.clamp_min(std::exp(-80.0));  // fp64
  at::Tensor logits = block.student.exp().mul_(share.to(at::kFloat));
  return logits.scatter_(1, ids, gradient.narrow(1, 0, top_k).to(at::kFloat));
}

at::Tensor by_logits_on_all(const Block& block, const DivergenceRules& rules, double divisor,
                            std::vector<double>& losses) {
  const auto [p_log, q_log] = std::pair(block.student, block.teacher);
  const at::Tensor p = p_log.exp();
  at::Tensor loss, gradient;
  if (rules.divergence == TokenDivergence::kForwardKl) {
    const at::Tensor q = q_log.exp();
    loss = (q_log - p_log).mul_(q).sum(1, /*keepdim=*/true, at::kDouble);
    gradient = p - q;
  } else if (rules.divergence == TokenDivergence::kReverseKl) {
    const at::Tensor ratio = p_log - q_log;
    loss = (p * ratio).sum(1, /*keepdim=*/true, at::kDouble);
    gradient = (ratio - loss.to(at::kFloat)).mul_(p);
  } else {
    const double alpha = rules.alpha;
    const at::Tensor m_log = at::logaddexp(p_log + std::log(1 - alpha), q_log + std::log(alpha));
    const at::Tensor of_student = (1 - alpha) * (p_log - m_log);
    const at::Tensor mean = (p * of_student).sum(1, /*keepdim=*/true, at::kDouble);
    loss = mean + ((q_log - m_log) * q_log.exp()).sum(1, /*keepdim=*/true, at::kDouble) * alpha;
    gradient = (of_student - mean.to(at::kFloat)).mul_(p);
  }
  const at::Tensor found = on_host(loss);
  losses.insert(losses.end(), found.const_data_ptr<double>(),
                found.const_data_ptr<double>() + found.numel());
  return gradient.div_(divisor);
}

}  // namespace

Distillation distil(const at::Tensor& student_hidden, const at::Tensor& student_head,
                    const at::Tensor& teacher_hidden, const at::Tensor& teacher_head,
                    const DistillationOptions& options) {
  const at::NoGradGuard no_grad;
  const at::Tensor tokens = student_head.detach().narrow(0, 0, options.vocabulary);
  const at::Tensor teacher_tokens = teacher_head.detach().narrow(0, 0, options.vocabulary);
  const std::int64_t top_k = std::min(options.rules.top_k, options.vocabulary - 1);
  const double divisor = static_cast<double>(options.mean_tokens) / options.gradient_scale;
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
  const auto by_logits = [&](const Block& block) {
    switch (options.rules.tokens) {
      case DistilledTokens::kStudentsTop:
        return by_logits_on_students_top(block, options.rules, top_k, divisor, result.loss);
      case DistilledTokens::kTeachersTop:
        return by_logits_on_teachers_top(block, options.rules, top_k, divisor, result.loss);
      case DistilledTokens::kAll:
        break;
    }
    return by_logits_on_all(block, options.rules, divisor, result.loss);
  };
  for (std::int64_t begin = 0; begin < student_hidden.size(0); begin += options.block_tokens) {
    const std::int64_t count = std::min(options.block_tokens, student_hidden.size(0) - begin);
    const at::Tensor hidden = student_hidden.detach().narrow(0, begin, count);
    const Block block{log_probabilities(hidden, tokens),
                      log_probabilities(teacher_hidden.narrow(0, begin, count), teacher_tokens)};
    const at::Tensor rounded = by_logits(block).div_(options.temperature).to(hidden.scalar_type());
    result.hidden_gradient.narrow(0, begin, count).copy_(at::matmul(rounded, tokens));
    result.head_gradient.narrow(0, 0, options.vocabulary).add_(at::matmul(rounded.t(), hidden));
  }
  return result;
}

}  // namespace antisd::inline trainer
