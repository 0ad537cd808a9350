#include "ops/token_scores.h"

#include "core/check.h"
#include "ops/backend.h"
#include "ops/cpu_token_scores.h"

#ifdef ANTISD_CUDA
#include "ops/kernels/token_scores.h"
#endif

namespace antisd::inline ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct ScoreProblem {
  at::Tensor hidden, head, targets;
  float inverse_temperature;
  std::int64_t vocabulary;
  std::int64_t token_block, vocabulary_block;
};

ScoreBlocks choose_blocks(const at::Tensor& hidden, ScoreBlocks wanted, bool backward) {
  const ScoreBlocks base = score_blocks(hidden.device(), backward);
  return {wanted.tokens > 0 ? wanted.tokens : base.tokens,
          wanted.vocabulary > 0 ? wanted.vocabulary : base.vocabulary};
}

// z[tokens, columns] in fp32, whatever the operands' precision.
void logits_of(const at::Tensor& hidden, const at::Tensor& head, at::Tensor& logits) {
  if (hidden.scalar_type() == at::kFloat) {
    at::mm_out(logits, hidden, head.t());
  } else {
    at::mm_out(logits, hidden, head.t(), at::kFloat);
  }
}

// sum += a b in fp32.
void add_product(at::Tensor sum, const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() == at::kFloat) {
    sum.addmm_(a, b);
  } else {
    at::addmm_out(sum, sum, a, b, at::kFloat);
  }
}

// Calls visit(first token, tokens, first column, columns) for every block, vocabulary inside
// tokens.
template <typename Visit>
void for_each_block(const ScoreProblem& p, Visit&& visit) {
  for (std::int64_t t = 0; t < p.hidden.size(0); t += p.token_block) {
    const std::int64_t tokens = std::min(p.token_block, p.hidden.size(0) - t);
    for (std::int64_t c = 0; c < p.vocabulary; c += p.vocabulary_block) {
      visit(t, tokens, c, std::min(p.vocabulary_block, p.vocabulary - c));
    }
  }
}

at::Tensor logits_buffer(const ScoreProblem& p) {
  return at::empty(
      {std::min(p.token_block, p.hidden.size(0)) * std::min(p.vocabulary_block, p.vocabulary)},
      p.hidden.options().dtype(at::kFloat));
}

struct Scores {
  at::Tensor logp, entropy, lse;
};

Scores score_forward(const ScoreProblem& p) {
  const std::int64_t n = p.hidden.size(0);
  const auto fp32 = p.hidden.options().dtype(at::kFloat);
  Scores scores{at::empty({n}, fp32), at::empty({n}, fp32), at::empty({n}, fp32)};
  if (n == 0) return scores;
  const at::Tensor statistics = at::empty({n, 4}, fp32);
  const at::Tensor buffer = logits_buffer(p);
  for_each_block(p, [&](std::int64_t t, std::int64_t tokens, std::int64_t c, std::int64_t columns) {
    at::Tensor logits = buffer.narrow(0, 0, tokens * columns).view({tokens, columns});
    logits_of(p.hidden.narrow(0, t, tokens), p.head.narrow(0, c, columns), logits);
    float* rows = statistics.mutable_data_ptr<float>() + t * 4;
    const std::int32_t* targets = p.targets.const_data_ptr<std::int32_t>() + t;
#ifdef ANTISD_CUDA
    if (p.hidden.is_cuda()) {
      launch_fold_logits(logits.const_data_ptr<float>(), columns, tokens, columns, c, p.vocabulary,
                         targets, p.inverse_temperature, c == 0,
                         reinterpret_cast<RowStatistics*>(rows), current_stream(p.hidden));
      return;
    }
#endif
    cpu_fold_logits(logits.const_data_ptr<float>(), tokens, columns, c, targets,
                    p.inverse_temperature, c == 0, rows);
  });
#ifdef ANTISD_CUDA
  if (p.hidden.is_cuda()) {
    launch_finish_scores(reinterpret_cast<const RowStatistics*>(statistics.const_data_ptr<float>()),
                         n, scores.logp.mutable_data_ptr<float>(),
                         scores.entropy.mutable_data_ptr<float>(),
                         scores.lse.mutable_data_ptr<float>(), current_stream(p.hidden));
    return scores;
  }
#endif
  cpu_finish_scores(statistics.const_data_ptr<float>(), n, scores.logp.mutable_data_ptr<float>(),
                    scores.entropy.mutable_data_ptr<float>(), scores.lse.mutable_data_ptr<float>());
  return scores;
}

struct TokenScores : torch::autograd::Function<TokenScores> {
  static variable_list forward(AutogradContext* context, const at::Tensor& hidden,
                               const at::Tensor& head, const at::Tensor& targets,
                               double temperature, std::int64_t vocabulary,
                               std::int64_t token_block, std::int64_t vocabulary_block) {
    const ScoreBlocks blocks =
        choose_blocks(hidden, {token_block, vocabulary_block}, /*backward=*/false);
    const ScoreProblem problem{
        hidden,     head,          targets,          static_cast<float>(1 / temperature),
        vocabulary, blocks.tokens, blocks.vocabulary};
    const Scores scores = score_forward(problem);
    context->save_for_backward({hidden, head, targets, scores.lse, scores.entropy});
    context->saved_data["temperature"] = temperature;
    context->saved_data["vocabulary"] = vocabulary;
    context->saved_data["token_block"] = token_block;
    context->saved_data["vocabulary_block"] = vocabulary_block;
    return {scores.logp, scores.entropy};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const ScoreBlocks blocks = choose_blocks(saved[0],
                                             {context->saved_data["token_block"].toInt(),
                                              context->saved_data["vocabulary_block"].toInt()},
                                             /*backward=*/true);
    const ScoreProblem p{saved[0],
                         saved[1],
                         saved[2],
                         static_cast<float>(1 / context->saved_data["temperature"].toDouble()),
                         context->saved_data["vocabulary"].toInt(),
                         blocks.tokens,
                         blocks.vocabulary};
    const auto fp32 = p.hidden.options().dtype(at::kFloat);
    const at::Tensor dlogp =
        gradients[0].defined() ? gradients[0].contiguous() : at::zeros_like(saved[3]);
    const at::Tensor dentropy = gradients[1].defined() ? gradients[1].contiguous() : at::Tensor();
    const bool wants_head = context->needs_input_grad(1);
    at::Tensor dhidden = at::zeros(p.hidden.sizes(), fp32);
    at::Tensor dhead = wants_head ? at::zeros(p.head.sizes(), fp32) : at::Tensor();
    if (p.hidden.size(0) > 0) {
      const at::Tensor buffer = logits_buffer(p);
      const at::Tensor gradient_buffer = at::empty(buffer.sizes(), p.hidden.options());
      for_each_block(p, [&](std::int64_t t, std::int64_t tokens, std::int64_t c,
                            std::int64_t columns) {
        const at::Tensor hidden = p.hidden.narrow(0, t, tokens),
                         head = p.head.narrow(0, c, columns);
        at::Tensor logits = buffer.narrow(0, 0, tokens * columns).view({tokens, columns});
        at::Tensor dlogits = gradient_buffer.narrow(0, 0, tokens * columns).view({tokens, columns});
        logits_of(hidden, head, logits);
        logit_gradient(p, logits, t, c, saved[3], saved[4], dlogp, dentropy, dlogits);
        add_product(dhidden.narrow(0, t, tokens), dlogits, head);
        if (wants_head) add_product(dhead.narrow(0, c, columns), dlogits.t(), hidden);
      });
    }
    variable_list result(7);
    result[0] = dhidden.to(p.hidden.scalar_type());
    if (wants_head) result[1] = dhead.to(p.head.scalar_type());
    return result;
  }

 private:
  static void logit_gradient(const ScoreProblem& p, const at::Tensor& logits, std::int64_t t,
                             std::int64_t c, const at::Tensor& lse, const at::Tensor& entropy,
                             const at::Tensor& dlogp, const at::Tensor& dentropy,
                             at::Tensor& dlogits) {
    const std::int64_t tokens = logits.size(0), columns = logits.size(1);
    const float* entropy_gradient =
        dentropy.defined() ? dentropy.const_data_ptr<float>() + t : nullptr;
    const std::int32_t* targets = p.targets.const_data_ptr<std::int32_t>() + t;
#ifdef ANTISD_CUDA
    if (logits.is_cuda()) {
      launch_logit_gradient(element_type(dlogits), logits.const_data_ptr<float>(), columns, tokens,
                            columns, c, p.vocabulary, targets, lse.const_data_ptr<float>() + t,
                            entropy.const_data_ptr<float>() + t, dlogp.const_data_ptr<float>() + t,
                            entropy_gradient, p.inverse_temperature, dlogits.mutable_data_ptr(),
                            current_stream(logits));
      return;
    }
#endif
    cpu_logit_gradient(logits.const_data_ptr<float>(), tokens, columns, c, targets,
                       lse.const_data_ptr<float>() + t, entropy.const_data_ptr<float>() + t,
                       dlogp.const_data_ptr<float>() + t, entropy_gradient, p.inverse_temperature,
                       dlogits.mutable_data_ptr<float>());
  }
};

}  // namespace

ScoreBlocks score_blocks(at::Device device, bool backward) {
  if (!device.is_cuda()) return {256, 8192};
  // Columns in whole waves of 128 x 256 tiles on 132 multiprocessors. Forward: long runs of tokens,
  // so that a few large products run (0.29 GiB of logits; measured faster than blocks that stay in
  // the level-2 cache). Backward keeps to that cache, since a block is read and written more often.
  return backward ? ScoreBlocks{2048, 4224} : ScoreBlocks{8192, 8448};
}

TokenScoreTensors token_scores(const at::Tensor& hidden, const at::Tensor& head,
                               const at::Tensor& targets, double temperature,
                               std::int64_t vocabulary, Gradients gradients, ScoreBlocks blocks) {
  ANTISD_CHECK_EQ(hidden.dim(), 2);
  ANTISD_CHECK_EQ(hidden.size(1), head.size(1));
  ANTISD_CHECK_EQ(targets.numel(), hidden.size(0));
  ANTISD_CHECK_LE(vocabulary, head.size(0));
  ANTISD_CHECK(targets.scalar_type() == at::kInt && hidden.is_contiguous() && head.is_contiguous());
  const at::AutoGradMode recording(gradients == Gradients::kRecorded);
  const auto scores = TokenScores::apply(hidden, head, targets, temperature, vocabulary,
                                         blocks.tokens, blocks.vocabulary);
  return {scores[0], scores[1]};
}

}  // namespace antisd::inline ops
