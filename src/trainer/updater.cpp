#include "trainer/updater.h"

#include <array>
#include <cmath>
#include <memory>

#include "trainer/policy_objective.h"
#include "trainer/sdpo_objective.h"

namespace antisd::inline trainer {
namespace {

std::unique_ptr<Objective> make_objective(const UpdateInput& input, const CausalLm& model,
                                          const CausalLm& teacher, double temperature,
                                          bool off_policy) {
  const Method& method = input.shaping.method;
  if (method.distils)
    return std::make_unique<SdpoObjective>(method, model, teacher, temperature, input.batch);
  return std::make_unique<PolicyObjective>(input.shaping, input.batch, off_policy);
}

// Fills the record of a response in the first pass over it.
void add_first_sight(const PassView& pass, bool off_policy, ResponseBatch& batch, NamedSums& sums) {
  for (std::size_t s = 0; s < pass.sequences.size(); ++s) {
    Response& response = batch[pass.sequences[s].number];
    if (!response.student.logp.empty()) continue;  // filled in an earlier epoch
    const TokenScores& student = pass.student[s];
    for (std::size_t i = 0; i < response.sampling_logp.size(); ++i)
      sums["probability_gap"].add(std::abs(std::exp(double(response.sampling_logp[i])) -
                                           std::exp(double(student.logp[i]))));
    response.student = off_policy ? response.before : student;
    if (!pass.teacher.empty() && response.teacher.logp.empty()) response.teacher = pass.teacher[s];
  }
}

MeanOver sum_over(Communicator& processes, MeanOver own) {
  std::array counts = {static_cast<double>(own.tokens), static_cast<double>(own.sequences)};
  processes.sum(counts);
  return {.tokens = static_cast<std::int64_t>(counts[0]),
          .sequences = static_cast<std::int64_t>(counts[1])};
}

}  // namespace

UpdateResult Updater::step(CausalLm& model, AdamW& optimizer, double lr,
                           const UpdateInput& input) const {
  const CausalLm& teacher = input.teacher != nullptr ? *input.teacher : model;
  const bool off_policy = needs_old_scores();
  const std::unique_ptr<Objective> objective =
      make_objective(input, model, teacher, options_.temperature, off_policy);
  const bool shows_teacher = objective->needs().teacher;
  UpdateResult result;
  GradientPass gradients(
      model, optimizer,
      {.micro_batch_tokens = options_.micro_batch_tokens,
       .gradient_checkpointing = options_.gradient_checkpointing,
       .temperature = options_.temperature,
       .teacher = &teacher},
      [&](const PassView& pass) { add_first_sight(pass, off_policy, input.batch, result.sums); });
  const std::vector<ResponseNumbers> mini_batches =
      cut_mini_batches(input.batch, options_.minibatches);
  for (std::int64_t epoch = 0; epoch < options_.epochs; ++epoch) {
    for (const ResponseNumbers& mini_batch : mini_batches) {
      PassBatch batch{.sequences = student_sequences(input.prompts, input.batch, mini_batch)};
      if (shows_teacher) batch.shown = teacher_sequences(input.batch, mini_batch);
      const MeanOver mean = sum_over(processes_, mean_over(batch.sequences));
      if (mean.tokens == 0) continue;
      result.grad_norm += gradients.update(lr, batch, mean, *objective).grad_norm;
      ++result.updates;
    }
  }
  if (result.updates > 0) result.grad_norm /= static_cast<double>(result.updates);
  result.tokens = sum(processes_, static_cast<double>(gradients.tokens()));
  objective->finish();
  result.sums.add(objective->sums);
  sum_over(processes_, result.sums);
  return result;
}

void sum_over(Communicator& processes, NamedSums& sums) {
  NamedSums all;
  all.add_message(processes.gather(sums.message()));
  sums = std::move(all);
}

}  // namespace antisd::inline trainer
