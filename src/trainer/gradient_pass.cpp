#include "trainer/gradient_pass.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/check.h"
#include "dist/agreement.h"
#include "ops/tensor_errors.h"
#include "trainer/rank_messages.h"

namespace antisd::inline trainer {
namespace {

template <typename Values>
bool are_finite(const Values& values) {
  return std::ranges::all_of(values, [](double v) { return std::isfinite(v); });
}

NotFiniteError not_finite_in(const std::string& what, const PassView& pass, std::size_t sequence) {
  const auto of = [&](const std::vector<TokenScores>& scores) {
    return sequence < scores.size() ? scores[sequence] : TokenScores();
  };
  return {what, pass.sequences[sequence].number, of(pass.student), of(pass.teacher)};
}

// Fails with the first sequence whose scores, losses or derivatives are not finite.
void check_scores(const PassView& pass) {
  for (std::size_t s = 0; s < pass.student.size(); ++s) {
    const TokenScores& student = pass.student[s];
    if (are_finite(student.logp) && are_finite(student.entropy)) continue;
    throw not_finite_in("the model's log-probabilities are not finite", pass, s);
  }
}

void check_derivative(const PassView& pass, const Derivative& derivative) {
  std::size_t begin = 0;
  for (std::size_t s = 0; s < pass.student.size(); ++s) {
    const std::size_t count = pass.sequences[s].targets.size();
    const auto own = [&](const std::vector<double>& values) {
      return values.size() == 1 ? std::span(values) : std::span(values).subspan(begin, count);
    };
    const bool is_finite = (derivative.loss.empty() || are_finite(own(derivative.loss))) &&
                           (derivative.by_logp.empty() || are_finite(own(derivative.by_logp)));
    if (!is_finite) throw not_finite_in("the loss is not finite", pass, s);
    begin += count;
  }
}

at::Tensor scaled_gradient(const PassView& pass, const std::vector<double>& by_logp) {
  const at::Tensor& logp = pass.scores.logp;
  if (by_logp.size() == 1) return at::full_like(logp, by_logp.front() * pass.scale);
  ANTISD_CHECK_EQ(std::ssize(by_logp), logp.numel());
  at::Tensor gradient = at::empty(logp.sizes(), at::kFloat);
  std::ranges::transform(by_logp, gradient.mutable_data_ptr<float>(),
                         [&](double g) { return static_cast<float>(g * pass.scale); });
  return gradient.to(logp.device());
}

void go_back(CausalLm& model, const PassView& pass, const Derivative& derivative) {
  std::vector<at::Tensor> roots, gradients;
  if (derivative.by_hidden.defined()) {
    roots.push_back(pass.hidden);
    gradients.push_back(derivative.by_hidden);
  }
  if (!derivative.by_logp.empty()) {
    roots.push_back(pass.scores.logp);
    gradients.push_back(scaled_gradient(pass, derivative.by_logp));
  }
  // As a root, so that what a micro-batch adds to the head is one sum before it meets the others'.
  if (derivative.by_head.defined() && model.head().weight.requires_grad()) {
    roots.push_back(model.head().weight);
    gradients.push_back(derivative.by_head.to(model.dtype()));
  }
  torch::autograd::backward(roots, gradients);
}

void look_as_teacher(const CausalLm& teacher, std::span<const TargetSequence> shown,
                     const GradientPassOptions& options, PassView& pass) {
  if (options.states != nullptr) {
    pass.teacher_hidden = options.states->hidden_of(pass.sequences, pass.hidden.device());
    pass.teacher = options.states->scores_of(pass.sequences);
    return;
  }
  const at::NoGradGuard no_grad;
  const Passage passage = lay_out(shown, teacher.device(), options.pack);
  pass.teacher_hidden = hidden_before_targets(teacher, passage);
  pass.teacher =
      to_host(passage, score_targets(teacher, passage, pass.teacher_hidden, options.temperature));
}

// Hidden states and scores of the student. Returns the number of rows that went through the model.
std::int64_t look_as_student(const CausalLm& model, const ObjectiveNeeds& needs,
                             const GradientPassOptions& options, Pass kind, PassView& pass) {
  const Passage passage = lay_out(pass.sequences, model.device(), options.pack);
  pass.hidden = hidden_before_targets(model, passage, kind, options.kept_layers);
  // Without a gradient by log-probability, the scores are only for the record.
  pass.scores = score_targets(model, passage, pass.hidden, options.temperature,
                              needs.gradient_by_logp ? gradients_of(kind) : Gradients::kNone);
  if (needs.scores_on_host) pass.student = to_host(passage, pass.scores);
  check_scores(pass);
  return passage.batch.tokens();
}

bool has_finite_gradients(const CausalLm& model) {
  for (const Parameter& parameter : model.parameters()) {
    if (!parameter.spec.trainable) continue;
    const at::Tensor& gradient = parameter.value.grad();
    if (gradient.defined() && !gradient.isfinite().all().item<bool>()) return false;
  }
  return true;
}

}  // namespace

NotFiniteError::NotFiniteError(const std::string& what, std::size_t number, TokenScores student,
                               TokenScores teacher)
    : NotFinite(what, {.remedy = "the weights were not changed; lower optim.lr, compute in bf16 if "
                                 "model.dtype is fp16, or look at the file that was written"}),
      number(number),
      student(std::move(student)),
      teacher(std::move(teacher)) {}

std::vector<IndexRange> cut_sequences(std::span<const TargetSequence> sequences, std::int64_t limit,
                                      std::int64_t at_least) {
  std::vector<RunItem> items;
  for (const TargetSequence& sequence : sequences)
    items.push_back({std::ssize(sequence.ids), sequence.shared});
  const std::vector<IndexRange> runs = cut_runs(items, {.most = limit});
  return std::ssize(runs) >= at_least ? runs : cut_evenly(items, at_least);
}

std::vector<IndexRange> micro_batches_of(std::span<const TargetSequence> sequences,
                                         const GradientPassOptions& options,
                                         const Communicator& ranks) {
  return cut_sequences(sequences, options.micro_batch_tokens,
                       options.micro_batches > 0 ? options.micro_batches : ranks.size());
}

MeanOver mean_over(std::span<const TargetSequence> sequences) {
  MeanOver mean{.tokens = 0, .sequences = std::ssize(sequences)};
  for (const TargetSequence& sequence : sequences)
    mean.tokens += std::ssize(sequence.targets);
  return mean;
}

UpdateReport GradientPass::update(double lr, const PassBatch& batch, MeanOver mean,
                                  Objective& objective) {
  add_gradients(batch, mean, objective);
  UpdateReport report;
  in_step(ranks_, [&] {
    with_tensor_errors(
        [&] { report = optimizer_.step(lr, gradient_scale(model_.dtype(), mean.tokens)); });
  });
  if (!report.applied) find_culprit(batch, mean, objective, report.culprit);
  return report;
}

void GradientPass::add_gradients(const PassBatch& batch, MeanOver mean, Objective& objective) {
  const std::vector<IndexRange> runs = micro_batches_of(batch.sequences, options_, ranks_);
  const bool sums = ranks_.size() > 1 || runs.size() > 1;
  std::vector<MicroBatchResult> results(runs.size());
  std::vector<at::Tensor> loss_sums(runs.size());
  const auto size = static_cast<std::size_t>(ranks_.size());
  const int passes = objective.needs().teacher && options_.teacher == &model_ ? 2 : 1;
  try {
    for (std::size_t first = 0; first < runs.size(); first += size) {
      const std::size_t active = std::min(size, runs.size() - first);
      const std::size_t own = first + static_cast<std::size_t>(ranks_.rank());
      std::optional<Forward> forward;
      // All ranks know that all forward passes went well before one sends a gradient.
      agree(ranks_, [&] {
        optimizer_.make_passes(passes, [&] {
          with_tensor_errors([&] {
            if (own < first + active) forward = look(batch, runs[own], mean, objective);
          });
        });
      });
      in_step(ranks_, [&] {
        with_tensor_errors([&] {
          if (sums) optimizer_.begin_round(static_cast<int>(active));
          if (forward) go_back(model_, forward->view, forward->derivative);
          if (sums) optimizer_.end_round();
        });
      });
      if (!forward) continue;
      results[own] = {.student = std::move(forward->view.student),
                      .teacher = std::move(forward->view.teacher),
                      .loss = std::move(forward->derivative.loss)};
      loss_sums[own] = forward->derivative.loss_sum;
    }
  } catch (const RankLost&) {
    optimizer_.drop_gradients();
    throw;
  } catch (const FailedAlone&) {
    optimizer_.drop_gradients();
    throw;
  } catch (const Error&) {  // all ranks have it
    optimizer_.drop_gradients();
    optimizer_.end_passes();
    throw;
  }
  for (std::size_t i = 0; i < runs.size(); ++i)  // only now: it waits for the device
    if (loss_sums[i].defined()) results[i].loss_sum = loss_sums[i].item<double>();
  exchange_results(ranks_, results);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto sequences = std::span(batch.sequences).subspan(runs[i].begin, runs[i].size());
    objective.account(sequences, results[i], mean);
    if (on_micro_batch_) on_micro_batch_(sequences, results[i]);
  }
}

GradientPass::Forward GradientPass::look(const PassBatch& batch, IndexRange run, MeanOver mean,
                                         Objective& objective) {
  const ObjectiveNeeds needs = objective.needs();
  PassView view{.sequences = std::span(batch.sequences).subspan(run.begin, run.size()),
                .mean = mean,
                .scale = gradient_scale(model_.dtype(), mean.tokens)};
  tokens_ += look_as_student(model_, needs, options_, Pass::kRecomputed, view);
  if (needs.teacher) {
    ANTISD_CHECK(options_.teacher != nullptr && batch.shown.size() == batch.sequences.size());
    look_as_teacher(*options_.teacher, std::span(batch.shown).subspan(run.begin, run.size()),
                    options_, view);
  }
  Derivative derivative = objective.differentiate(view);
  check_derivative(view, derivative);
  return {std::move(view), std::move(derivative)};
}

// Slow path after a failure: every sequence by itself, each rank a part of them. The first culprit
// counts.
void GradientPass::find_culprit(const PassBatch& batch, MeanOver mean, Objective& objective,
                                const std::string& parameter) {
  const std::string what = fmt::format("the gradient of {} is not finite", parameter);
  const auto size = static_cast<std::size_t>(ranks_.size());
  std::size_t own = batch.sequences.size();  // none
  std::optional<NotFiniteError> error;
  optimizer_.make_whole();  // each rank makes passes of its own
  for (std::size_t s = 0; s < batch.sequences.size() && !error; ++s) {
    // What another model saw of a sequence is on one rank.
    const bool is_own = options_.states != nullptr
                            ? options_.states->has(batch.sequences[s].number)
                            : s % size == static_cast<std::size_t>(ranks_.rank());
    if (!is_own) continue;
    try {
      const Forward alone = look(batch, {s, s + 1}, mean, objective);
      go_back(model_, alone.view, alone.derivative);
      if (!has_finite_gradients(model_)) throw not_finite_in(what, alone.view, 0);
    } catch (const NotFiniteError& found) {
      error.emplace(found);
      own = s;
    }
    optimizer_.drop_gradients();
  }
  const std::vector<double> found = gather_values(ranks_, std::vector{static_cast<double>(own)});
  const double first = *std::ranges::min_element(found);
  agree(ranks_, [&] {
    if (error && static_cast<double>(own) == first) throw *error;
  });
  throw NotFinite(fmt::format("{}, although that of each {} by itself is", what, options_.noun),
                  {.remedy = "the weights were not changed; lower optim.lr or loss.kl_coef, or "
                             "compute in bf16 if model.dtype is fp16"});
}

void measure(const CausalLm& model, Communicator& ranks, std::span<const TargetSequence> sequences,
             const GradientPassOptions& options, MeanOver mean, Objective& objective) {
  ANTISD_CHECK(!objective.needs().teacher);
  const at::NoGradGuard no_grad;
  const std::vector<IndexRange> runs = cut_sequences(sequences, options.micro_batch_tokens);
  std::vector<MicroBatchResult> results(runs.size());
  const auto measure_own = [&] {
    with_tensor_errors([&] {
      for (auto i = static_cast<std::size_t>(ranks.rank()); i < runs.size();
           i += static_cast<std::size_t>(ranks.size())) {
        PassView view{.sequences = sequences.subspan(runs[i].begin, runs[i].size()), .mean = mean};
        look_as_student(model, objective.needs(), options, Pass::kInference, view);
        Derivative derivative = objective.differentiate(view);
        results[i] = {.student = std::move(view.student), .loss = std::move(derivative.loss)};
        if (derivative.loss_sum.defined()) results[i].loss_sum = derivative.loss_sum.item<double>();
      }
    });
  };
  agree(ranks, [&] { model.make_passes({}, measure_own); });
  exchange_results(ranks, results);
  for (std::size_t i = 0; i < runs.size(); ++i)
    objective.account(sequences.subspan(runs[i].begin, runs[i].size()), results[i], mean);
}

}  // namespace antisd::inline trainer
