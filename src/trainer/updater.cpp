#include "trainer/updater.h"

#include <cmath>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include "algo/clipped_loss.h"
#include "core/check.h"
#include "ops/token_scores.h"
#include "trainer/distillation.h"

namespace antisd {
namespace {

// The responses of a micro-batch as the model takes them. The row before a token predicts it.
struct Passage {
  PackedBatch batch;
  at::Tensor rows;     // int64 [response tokens]
  at::Tensor targets;  // int32 [response tokens]
};

// After the student's prompts, or after the teacher's.
Passage lay_out(const UpdateInput& input, std::span<const std::size_t> rollouts, at::Device device,
                bool teacher = false) {
  std::vector<std::vector<TokenId>> sequences;
  for (const std::size_t r : rollouts) {
    const std::vector<TokenId>& response = input.batch[r].response_ids;
    sequences.push_back(teacher ? input.contexts[r].prompt_ids
                                : input.prompts.prompts[r / input.batch.group_size()].ids);
    sequences.back().insert(sequences.back().end(), response.begin(), response.end());
  }
  Passage passage{.batch = pack(sequences, device), .rows = {}, .targets = {}};
  std::vector<std::int64_t> rows;
  std::vector<TokenId> targets;
  for (std::size_t s = 0; s < rollouts.size(); ++s) {
    const std::vector<TokenId>& response = input.batch[rollouts[s]].response_ids;
    const std::size_t prompt = sequences[s].size() - response.size();
    for (std::size_t i = 0; i < response.size(); ++i)
      rows.push_back(passage.batch.rows[s][prompt + i - 1]);
    targets.insert(targets.end(), response.begin(), response.end());
  }
  passage.rows = at::tensor(at::ArrayRef<std::int64_t>(rows), at::kLong).to(device);
  passage.targets = at::tensor(at::ArrayRef<TokenId>(targets), at::kInt).to(device);
  return passage;
}

template <typename Values>
bool all_finite(const Values& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

std::span<const float> logp_of(std::span<const TokenScores> scores, std::size_t rollout) {
  return scores.empty() ? std::span<const float>() : scores[rollout].logp;
}

bool gradients_are_finite(const CausalLm& model) {
  for (const Parameter& parameter : model.parameters()) {
    const at::Tensor& gradient = parameter.value.grad();
    if (gradient.defined() && !gradient.isfinite().all().item<bool>()) return false;
  }
  return true;
}

// What the record says of a response: as the first pass over it saw it.
void add_first_sight(const UpdateInput& input, std::size_t r, TokenScores student,
                     const std::vector<double>& advantage, UpdateResult& result) {
  if (!result.student[r].logp.empty()) return;  // of an earlier epoch
  const std::vector<float>& sampled = input.batch[r].sampling_logp;
  for (std::size_t i = 0; i < sampled.size(); ++i)
    result.probability_gap.add(
        std::abs(std::exp(double(sampled[i])) - std::exp(double(student.logp[i]))));
  result.student[r] = input.old_scores.empty() ? std::move(student) : input.old_scores[r];
  result.token_advantage[r] = advantage;
}

// The KL to the reference beside a loss of its own; `gradient` is by each log-probability, before
// the mean.
void add_penalties(std::span<const float> logp, std::span<const float> reference,
                   double coefficient, TokenLosses& losses, float* gradient) {
  ANTISD_CHECK_EQ(reference.size(), logp.size());
  for (std::size_t i = 0; i < logp.size(); ++i) {
    const KlPenalty penalty = kl_penalty(logp[i], reference[i]);
    losses.loss[i] += coefficient * penalty.loss;
    losses.kl += penalty.loss;
    gradient[i] = static_cast<float>(coefficient * penalty.gradient);
  }
}

constexpr std::size_t kMomentNumbers = 6;

void append(std::vector<double>& numbers, const Moments& m) {
  numbers.insert(numbers.end(), {static_cast<double>(m.count), m.sum, m.sum_squares, m.min, m.max,
                                 static_cast<double>(m.negative)});
}

Moments moments_at(std::span<const double> n) {
  Moments m;
  m.count = static_cast<std::int64_t>(n[0]);
  m.sum = n[1];
  m.sum_squares = n[2];
  m.min = n[3];
  m.max = n[4];
  m.negative = static_cast<std::int64_t>(n[5]);
  return m;
}

}  // namespace

NotFiniteError::NotFiniteError(const std::string& what, std::size_t rollout, TokenScores student)
    : NotFinite(what, {.remedy = "the weights were not touched; lower optim.lr, compute in bf16 if "
                                 "model.dtype is fp16, or look at the response that was written "
                                 "down"}),
      rollout(rollout),
      student(std::move(student)) {}

UpdateResult Updater::step(CausalLm& model, AdamW& optimizer, double lr,
                           const UpdateInput& input) const {
  ANTISD_CHECK(needs_old_scores() == !input.old_scores.empty());
  UpdateResult result;
  result.student.resize(input.batch.size());
  result.token_advantage.resize(input.batch.size());
  const std::vector<RolloutNumbers> mini_batches =
      cut_mini_batches(input.batch, options_.minibatches);
  for (std::int64_t epoch = 0; epoch < options_.epochs; ++epoch) {
    for (const RolloutNumbers& mini_batch : mini_batches) {
      double own_tokens = 0;
      for (const std::size_t r : mini_batch)
        own_tokens += static_cast<double>(input.batch[r].response_ids.size());
      const auto mean_tokens = static_cast<std::int64_t>(sum(processes_, own_tokens));
      if (mean_tokens == 0) continue;
      add_gradients(model, optimizer, input, mini_batch, mean_tokens, result);
      const UpdateReport report = optimizer.step(lr, gradient_scale(model.dtype(), mean_tokens));
      if (!report.applied)
        find_culprit(model, optimizer, input, mini_batch, mean_tokens, report.culprit);
      result.grad_norm += report.grad_norm;
      ++result.updates;
    }
  }
  if (result.updates > 0) result.grad_norm /= static_cast<double>(result.updates);
  result.tokens = sum(processes_, result.tokens);
  sum_over(processes_, result.totals);
  sum_over(processes_, result.probability_gap);
  return result;
}

void Updater::add_gradients(CausalLm& model, AdamW& optimizer, const UpdateInput& input,
                            const RolloutNumbers& mini_batch, std::int64_t mean_tokens,
                            UpdateResult& result) const {
  const std::vector<RolloutNumbers> micro_batches =
      cut_micro_batches(input.prompts, input.batch, mini_batch, options_.micro_batch_tokens);
  try {
    for (const RolloutNumbers& rollouts : micro_batches) {
      pass(model, input, rollouts, mean_tokens, result);
      if (micro_batches.size() > 1) optimizer.take_gradients();
      ++result.micro_batches;
    }
  } catch (...) {
    optimizer.drop_gradients();
    throw;
  }
}

void Updater::pass(CausalLm& model, const UpdateInput& input, std::span<const std::size_t> rollouts,
                   std::int64_t mean_tokens, UpdateResult& result) const {
  if (input.shaping.method.distils)
    return distilling_pass(model, input, rollouts, mean_tokens, result);
  const Passage passage = lay_out(input, rollouts, model.device());
  const at::Tensor hidden =
      model.hidden_states(passage.batch, training_pass(options_.gradient_checkpointing))
          .index_select(0, passage.rows);
  result.tokens += static_cast<double>(passage.batch.ids.numel());
  const TokenScoreTensors scores = token_scores(hidden, model.head().weight, passage.targets,
                                                options_.temperature, model.shape().vocabulary);
  const at::Tensor logp = scores.logp.detach().to(at::kCPU);
  const at::Tensor entropy = scores.entropy.detach().to(at::kCPU);

  const double scale = gradient_scale(model.dtype(), mean_tokens);
  at::Tensor gradient = at::empty_like(logp);
  std::size_t begin = 0;
  for (const std::size_t r : rollouts) {
    const std::size_t count = input.batch[r].response_ids.size();
    const float *s = logp.const_data_ptr<float>() + begin,
                *h = entropy.const_data_ptr<float>() + begin;
    TokenScores student{{s, s + count}, {h, h + count}};
    if (!all_finite(student.logp) || !all_finite(student.entropy))
      throw NotFiniteError("the model's log-probabilities are not finite", r, std::move(student));
    const TokenLosses losses = token_losses(input.shaping, r,
                                            {.logp = student.logp,
                                             .old_logp = logp_of(input.old_scores, r),
                                             .reference = logp_of(input.reference, r)},
                                            mean_tokens);
    if (!all_finite(losses.loss) || !all_finite(losses.gradient))
      throw NotFiniteError("the loss is not finite", r, std::move(student));
    std::transform(losses.gradient.begin(), losses.gradient.end(),
                   gradient.mutable_data_ptr<float>() + begin,
                   [&](double g) { return static_cast<float>(g * scale); });
    begin += count;
    result.totals.add(losses, student.entropy);
    add_first_sight(input, r, std::move(student), losses.advantages.advantage, result);
  }
  scores.logp.backward(gradient.to(model.device()));
}

void Updater::distilling_pass(CausalLm& model, const UpdateInput& input,
                              std::span<const std::size_t> rollouts, std::int64_t mean_tokens,
                              UpdateResult& result) const {
  ANTISD_CHECK_EQ(input.contexts.size(), input.batch.size());
  const CausalLm& teacher = input.teacher != nullptr ? *input.teacher : model;
  const Passage passage = lay_out(input, rollouts, model.device());
  const Passage shown = lay_out(input, rollouts, model.device(), /*teacher=*/true);
  const at::Tensor hidden =
      model.hidden_states(passage.batch, training_pass(options_.gradient_checkpointing))
          .index_select(0, passage.rows);
  result.tokens += static_cast<double>(passage.batch.ids.numel());
  at::Tensor teacher_hidden;
  {
    const at::NoGradGuard no_grad;
    teacher_hidden = teacher.hidden_states(shown.batch).index_select(0, shown.rows);
  }
  const double scale = gradient_scale(model.dtype(), mean_tokens);
  const double kl_coef = input.shaping.method.loss.kl_coef;
  TokenScoreTensors scores;
  {
    const at::AutoGradMode gradients(kl_coef > 0);  // else only the record asks for them
    scores = token_scores(hidden, model.head().weight, passage.targets, options_.temperature,
                          model.shape().vocabulary);
  }
  const at::Tensor logp = scores.logp.detach().to(at::kCPU),
                   entropy = scores.entropy.detach().to(at::kCPU);
  const Distillation distilled =
      distil(hidden, model.head().weight, teacher_hidden, teacher.head().weight,
             {.temperature = options_.temperature,
              .vocabulary = model.shape().vocabulary,
              .top_k = input.shaping.method.sdpo.top_k,
              .alpha = input.shaping.method.sdpo.alpha,
              .mean_tokens = mean_tokens,
              .gradient_scale = scale});
  at::Tensor kl_gradient = at::zeros_like(logp);  // by the log-probability of each token
  std::size_t begin = 0;
  for (const std::size_t r : rollouts) {
    const std::size_t count = input.batch[r].response_ids.size();
    const float *s = logp.const_data_ptr<float>() + begin,
                *h = entropy.const_data_ptr<float>() + begin;
    TokenScores student{{s, s + count}, {h, h + count}};
    TokenLosses losses;
    losses.loss.assign(distilled.loss.begin() + std::ptrdiff_t(begin),
                       distilled.loss.begin() + std::ptrdiff_t(begin + count));
    if (kl_coef > 0) {
      add_penalties(student.logp, input.reference[r].logp, kl_coef, losses,
                    kl_gradient.mutable_data_ptr<float>() + begin);
    }
    if (!all_finite(student.logp) || !all_finite(losses.loss))
      throw NotFiniteError("the loss is not finite", r, std::move(student));
    begin += count;
    result.totals.add(losses, student.entropy);
    add_first_sight(input, r, std::move(student), {}, result);
  }
  if (kl_coef > 0) {
    kl_gradient.mul_(scale / static_cast<double>(mean_tokens));
    torch::autograd::backward({hidden, scores.logp},
                              {distilled.hidden_gradient, kl_gradient.to(model.device())});
  } else {
    hidden.backward(distilled.hidden_gradient);
  }
  const at::NoGradGuard no_grad;
  at::Tensor& head_gradient = at::Tensor(model.head().weight).mutable_grad();
  const at::Tensor own = distilled.head_gradient.to(model.dtype());
  if (head_gradient.defined()) {
    head_gradient.add_(own);
  } else {
    head_gradient = own;
  }
}

// The failure's own path, slow and thorough: every response alone.
void Updater::find_culprit(CausalLm& model, AdamW& optimizer, const UpdateInput& input,
                           const RolloutNumbers& mini_batch, std::int64_t mean_tokens,
                           const std::string& parameter) const {
  const std::string what = fmt::format("the gradient of {} is not finite", parameter);
  for (const std::size_t r : mini_batch) {
    UpdateResult alone;
    alone.student.resize(input.batch.size());
    alone.token_advantage.resize(input.batch.size());
    pass(model, input, {&r, 1}, mean_tokens, alone);
    const bool finite = gradients_are_finite(model);
    optimizer.drop_gradients();
    if (!finite) throw NotFiniteError(what, r, alone.student[r]);
  }
  throw NotFinite(
      what + ", though that of each response alone is",
      {.remedy = "the weights were not touched; lower optim.lr or loss.kl_coef, or compute in "
                 "bf16 if model.dtype is fp16"});
}

void sum_over(Communicator& processes, Moments& moments) {
  std::vector<double> numbers;
  append(numbers, moments);
  const std::vector<double> all = processes.gather(numbers);
  moments = {};
  for (std::size_t i = 0; i < all.size(); i += kMomentNumbers)
    moments.add(moments_at(std::span(all).subspan(i)));
}

void sum_over(Communicator& processes, UpdateTotals& totals) {
  for (Moments* moments :
       {&totals.loss, &totals.advantage, &totals.u, &totals.phi, &totals.entropy})
    sum_over(processes, *moments);
  std::array sums = {totals.clipped, totals.dual_clipped, totals.log_ratio,
                     totals.kl,      totals.term,         totals.group_advantage};
  processes.sum(sums);
  std::tie(totals.clipped, totals.dual_clipped, totals.log_ratio, totals.kl, totals.term,
           totals.group_advantage) = std::tuple_cat(sums);
}

}  // namespace antisd
