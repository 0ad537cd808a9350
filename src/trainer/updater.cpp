#include "trainer/updater.h"

#include <cmath>
#include <memory>

#include <ATen/ATen.h>

#include "dist/agreement.h"
#include "ops/tensor_errors.h"
#include "trainer/distil_objective.h"
#include "trainer/policy_objective.h"

namespace antisd::inline trainer {
namespace {

std::unique_ptr<Objective> make_objective(const UpdateInput& input, const CausalLm& model,
                                          const CausalLm& teacher, double temperature,
                                          bool off_policy) {
  const Method& method = input.shaping.method;
  if (method.distils) {
    const at::Tensor& head = input.states != nullptr ? input.states->head : teacher.head().weight;
    return std::make_unique<DistilObjective>(method, model, head, temperature, input.batch);
  }
  return std::make_unique<PolicyObjective>(input.shaping, input.batch, off_policy);
}

}  // namespace

void add_first_sight(std::span<const TargetSequence> sequences, const MicroBatchResult& result,
                     bool off_policy, ResponseBatch& batch, NamedSums& sums) {
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    Response& response = batch[sequences[s].number];
    if (!response.student.logp.empty()) continue;  // filled in an earlier epoch
    const TokenScores& student = result.student[s];
    for (std::size_t i = 0; i < response.sampling_logp.size(); ++i)
      sums["probability_gap"].add(std::abs(std::exp(double(response.sampling_logp[i])) -
                                           std::exp(double(student.logp[i]))));
    response.student = off_policy ? response.before : student;
    if (!result.teacher.empty() && response.teacher.logp.empty())
      response.teacher = result.teacher[s];
  }
}

GradientPassOptions Updater::pass_options() const {
  return {.micro_batch_tokens = options_.micro_batch_tokens,
          .micro_batches = options_.micro_batches,
          .kept_layers = options_.kept_layers,
          .temperature = options_.temperature,
          .pack = {.sums = options_.sums}};
}

TeacherStates Updater::look_as_teacher(const CausalLm& teacher, const PromptBatch& prompts,
                                       const ResponseBatch& batch, const LossConfig& loss,
                                       Communicator& ranks) const {
  const at::NoGradGuard no_grad;
  const GradientPassOptions options = pass_options();
  TeacherStates states;
  agree(ranks, [&] {
    with_tensor_errors([&] {
      states.head = teacher.head().weight.detach().clone();  // the teacher leaves the device
      for (const ResponseNumbers& numbers :
           cut_mini_batches(batch, options_.minibatches, loss.overlong_filter)) {
        const std::vector<TargetSequence> sequences = student_sequences(prompts, batch, numbers);
        const std::vector<TargetSequence> shown = teacher_sequences(batch, numbers);
        const std::vector<IndexRange> runs = micro_batches_of(sequences, options, ranks);
        for (auto i = static_cast<std::size_t>(ranks.rank()); i < runs.size();
             i += static_cast<std::size_t>(ranks.size())) {
          states.look(teacher, std::span(shown).subspan(runs[i].begin, runs[i].size()),
                      std::span(numbers).subspan(runs[i].begin, runs[i].size()),
                      options_.temperature);
        }
      }
    });
  });
  return states;
}

UpdateResult Updater::step(CausalLm& model, AdamW& optimizer, double lr,
                           const UpdateInput& input) const {
  const CausalLm& teacher = input.teacher != nullptr ? *input.teacher : model;
  const Method& method = input.shaping.method;
  const bool off_policy = needs_old_scores();
  const std::unique_ptr<Objective> objective =
      make_objective(input, model, teacher, options_.temperature, off_policy);
  const bool shows_teacher = objective->needs().teacher;
  UpdateResult result;
  GradientPassOptions pass = pass_options();
  pass.teacher = &teacher;
  pass.states = input.states;
  GradientPass gradients(
      model, optimizer, pass,
      [&](std::span<const TargetSequence> sequences, const MicroBatchResult& found) {
        add_first_sight(sequences, found, off_policy, input.batch, result.sums);
      });
  const std::vector<ResponseNumbers> mini_batches =
      cut_mini_batches(input.batch, options_.minibatches, method.loss.overlong_filter);
  for (std::int64_t epoch = 0; epoch < options_.epochs; ++epoch) {
    for (const ResponseNumbers& mini_batch : mini_batches) {
      PassBatch batch{.sequences = student_sequences(input.prompts, input.batch, mini_batch)};
      if (shows_teacher) batch.shown = teacher_sequences(input.batch, mini_batch);
      const MeanOver mean = options_.masks ? kept_over(method.loss, input.batch, mini_batch)
                                           : mean_over(batch.sequences);
      if (mean.tokens == 0) continue;
      result.grad_norm += gradients.update(lr, batch, mean, *objective).grad_norm;
      ++result.updates;
    }
  }
  if (result.updates > 0) result.grad_norm /= static_cast<double>(result.updates);
  result.tokens = sum_over(optimizer.ranks(), static_cast<double>(gradients.tokens()));
  result.sums.add(objective->sums);
  return result;
}

}  // namespace antisd::inline trainer
