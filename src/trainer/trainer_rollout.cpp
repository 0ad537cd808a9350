// The part of a step that gives responses and rewards: prompts, sampling on all ranks, grades, and
// dynamic sampling.
#include <map>

#include "algo/advantages.h"
#include "core/stopwatch.h"
#include "dist/agreement.h"
#include "ops/tensor_errors.h"
#include "trainer/trainer.h"

namespace antisd::inline trainer {
namespace {

constexpr std::size_t kReasonsShown = 4;  // of failed grades, in one warning

// The prompts that this rank samples; each keeps its index in the step. There may be none.
PromptBatch own_share(const PromptBatch& all, const Communicator& ranks) {
  const std::size_t count = all.prompts.size(), size = static_cast<std::size_t>(ranks.size()),
                    rank = static_cast<std::size_t>(ranks.rank());
  const auto begin = all.prompts.begin();
  PromptBatch own{.step = all.step, .prompts = {}};
  own.prompts.assign(begin + std::ptrdiff_t(rank * count / size),
                     begin + std::ptrdiff_t((rank + 1) * count / size));
  return own;
}

}  // namespace

// `drawn`: prompts that the step has drawn before. A prompt's index in the step decides its random
// numbers, so no two may share one.
PromptBatch Trainer::next_prompts(std::size_t count, std::size_t drawn) {
  PromptBatch prompts =
      parts_.renderer.batch(state_.random_step(), parts_.problems, state_.prompts.next(count));
  for (Prompt& prompt : prompts.prompts)
    prompt.index += static_cast<std::uint32_t>(drawn);
  return prompts;
}

void Trainer::roll_out(StepRecord& record, StepTimes& times) {
  GradeCounts grades;
  record.batch = roll_out_together(record, record.prompts, times, grades);
  refill(record, times, grades);
  warn_of_failed_grades(record.batch);
  give_up_without_grades(grades);
}

// Dynamic sampling: groups without a signal are replaced by groups of further prompts that have
// one, as far as rollout.refill rounds give any. What is left without a signal stays.
void Trainer::refill(StepRecord& record, StepTimes& times, GradeCounts& grades) {
  std::size_t drawn = record.prompts.prompts.size();
  for (std::int64_t round = 0; round < config_.rollout.refill; ++round) {
    std::vector<std::size_t> dull;
    for (std::size_t p = 0; p < record.batch.groups.size(); ++p)
      if (!has_signal(record.batch.groups[p])) dull.push_back(p);
    if (dull.empty()) return;
    PromptBatch fresh = next_prompts(dull.size(), drawn);
    drawn += dull.size();
    ResponseBatch found = roll_out_together(record, fresh, times, grades);
    ++record.refill.rounds;
    std::size_t next = 0;
    for (std::size_t p = 0; p < found.groups.size(); ++p) {
      const bool taken = has_signal(found.groups[p]);
      ResponseGroup& group = taken ? record.batch.groups[dull[next]] : found.groups[p];
      for (const Response& response : group.responses)
        record.refill.discarded_tokens += std::ssize(response.ids);
      if (!taken) continue;
      group = std::move(found.groups[p]);
      record.prompts.prompts[dull[next++]] = std::move(fresh.prompts[p]);
      ++record.refill.groups;
    }
  }
}

// Each rank its share of the prompts; then every rank has all responses.
ResponseBatch Trainer::roll_out_together(const StepRecord& record, const PromptBatch& prompts,
                                         StepTimes& times, GradeCounts& grades) {
  Rollouts all;
  if (parts_.ranks.size() == 1) {
    all = roll_out_share(record, prompts, times);
  } else {
    all = join_rollouts(gather_agreed(parts_.ranks, [&] {
      MessageWriter own;
      with_tensor_errors([&] { write(own, roll_out_share(record, prompts, times)); });
      parts_.ranks.enter(fmt::format("exchange of step {}", record.step));
      return own.bytes();
    }));
  }
  for (const std::string& text : all.warnings)
    parts_.recorder.warn(text);
  grades.asked += all.grades.asked;
  grades.graded += all.grades.graded;
  if (!all.grades.last_reason.empty()) grades.last_reason = all.grades.last_reason;
  return std::move(all.batch);
}

Rollouts Trainer::roll_out_share(const StepRecord& record, const PromptBatch& prompts,
                                 StepTimes& times) {
  Stopwatch clock;
  StepRecord own;
  own.step = record.step;
  own.lr = record.lr;
  own.prompts = own_share(prompts, parts_.ranks);
  parts_.ranks.enter(fmt::format("sampling of step {}", record.step));
  own.batch = sample(own.prompts);  // graded while others decode
  times.generate += clock.lap();
  parts_.ranks.enter(fmt::format("grading of step {}", record.step));
  Rollouts found;
  found.grades = grade(own);
  found.warnings = parts_.grader.take_warnings();
  found.batch = std::move(own.batch);
  times.reward += clock.lap();
  return found;
}

ResponseBatch Trainer::sample(const PromptBatch& prompts) {
  ResponseBatch batch;
  state_.model.make_passes({}, [&] {
    if (prompts.prompts.empty()) return;  // more ranks than prompts
    batch =
        sampler_.generate(state_.model, prompts, [&](std::size_t p, const ResponseGroup& group) {
          grading_.submit(p, *prompts.prompts[p].problem, group.responses);
        });
  });
  sampler_.release();
  return batch;
}

GradeCounts Trainer::grade(StepRecord& record) {
  try {
    return grading_.finish(record.batch);
  } catch (const BadRewardError& error) {
    throw BadRewardError(fmt::format("step {}: {}", record.step,
                                     dump_culprit(record, error.number, error.problem())),
                         error.number);
  }
}

// Nothing is learnt while the grader is broken, but the run would look alive.
void Trainer::give_up_without_grades(const GradeCounts& grades) {
  if (grades.asked == 0) return;  // all were truncated: says nothing about the grader
  ungraded_steps_ = grades.graded > 0 ? 0 : ungraded_steps_ + 1;
  const RewardConfig& reward = config_.reward;
  if (ungraded_steps_ < reward.give_up_after) return;
  throw RunError(
      fmt::format("step {}: {} gave no grade in {} consecutive steps, the last time because: {}",
                  state_.step + 1,
                  reward.kind == "command"  ? fmt::format("reward.command = `{}`", reward.command)
                  : reward.kind == "python" ? fmt::format("reward.function = {}", reward.function)
                                            : fmt::format("reward.kind = \"{}\"", reward.kind),
                  ungraded_steps_, grades.last_reason),
      {.where = "reward",
       .remedy = "fix the grader and continue with --resume, or raise reward.give_up_after"});
}

void Trainer::warn_of_failed_grades(const ResponseBatch& batch) {
  std::map<std::string, int> reasons;
  int failed = 0;
  for (std::size_t r = 0; r < batch.size(); ++r) {
    if (!batch[r].verdict.failed()) continue;
    ++failed;
    ++reasons[batch[r].verdict.reason];
  }
  if (failed == 0) return;
  std::string text;
  std::size_t shown = 0;
  for (const auto& [reason, count] : reasons) {
    if (++shown > kReasonsShown) break;
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", reason, count);
  }
  if (reasons.size() > kReasonsShown)
    text += fmt::format(", and {} reasons more", reasons.size() - kReasonsShown);
  parts_.recorder.warn(
      fmt::format("step {}: {} of {} responses could not be graded and are skipped: {}",
                  state_.step + 1, failed, batch.size(), text));
}

}  // namespace antisd::inline trainer
