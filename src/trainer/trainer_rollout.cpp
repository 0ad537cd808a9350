// The part of a step that gives responses and rewards: prompts, sampling on all ranks, grades, and
// dynamic sampling.
#include <algorithm>
#include <iterator>
#include <map>

#include "algo/advantages.h"
#include "core/stopwatch.h"
#include "dist/agreement.h"
#include "ops/tensor_errors.h"
#include "trainer/trainer.h"

namespace antisd::inline trainer {
namespace {

constexpr std::size_t kReasonsShown = 4;  // of failed grades, in one warning

}  // namespace

// A checkpoint has of carried groups what sampling needs to go on; the prompts are rendered anew.
void Trainer::render_carried() {
  const auto refuse = [](const std::string& what, const std::string& key) {
    throw InputError(
        fmt::format("the checkpoint's responses that are to go on (rollout.partial) {}", what),
        {.where = key, .remedy = "set it as it was, or resume from another checkpoint"});
  };
  for (OpenGroup& group : state_.carried) {
    Prompt& prompt = group.prompt;
    if (prompt.number >= parts_.problems.size()) refuse("are of unknown problems", "data.train");
    Prompt rendered = parts_.renderer.prompt(parts_.problems[prompt.number]);
    rendered.number = prompt.number;
    rendered.step = prompt.step;
    rendered.index = prompt.index;
    prompt = std::move(rendered);
    if (std::ssize(group.responses) != config_.rollout.group_size)
      refuse(fmt::format("are groups of {}", group.responses.size()), "rollout.group_size");
    if (group.to_sample(group.responses.size()) == 0) refuse("have ended", "state.json");
    const std::int64_t longest =
        std::min(config_.rollout.max_sequence_tokens, state_.model.shape().max_positions);
    for (const Response& response : group.responses) {
      if (response.paused() && std::ssize(prompt.ids) + std::ssize(response.ids) >= longest)
        refuse(fmt::format("are too long for a limit of {} tokens", longest),
               "rollout.max_sequence_tokens");
      const auto unknown = [&](TokenId id) {
        return id < 0 || id >= state_.model.shape().vocabulary;
      };
      if (std::ranges::any_of(response.ids, unknown))
        refuse("hold tokens that the model does not know", "model.path");
    }
  }
}

// `drawn`: prompts that the step has drawn before. A prompt's index in the step decides its random
// numbers, so no two may share one.
PromptBatch Trainer::next_prompts(std::size_t count, std::size_t drawn) {
  PromptBatch prompts =
      parts_.renderer.batch(state_.random_step(), parts_.problems, state_.prompts.next(count));
  for (Prompt& prompt : prompts.prompts)
    prompt.index += static_cast<std::uint32_t>(drawn);
  return prompts;
}

// Carried groups go on, and prompts_per_step new ones begin. The step trains on the groups that
// end in it; where none does, sampling goes on until one has.
void Trainer::roll_out(StepRecord& record, StepTimes& times) {
  GradeCounts grades;
  std::vector<OpenGroup> open = state_.carried;
  for (OpenGroup& fresh :
       open_groups(next_prompts(static_cast<std::size_t>(config_.rollout.prompts_per_step), 0)))
    open.push_back(std::move(fresh));
  do {
    RolledOut found = roll_out_together(record, std::move(open), times, grades);
    record.prompts = std::move(found.prompts);
    record.batch = std::move(found.batch);
    open = std::move(found.open);
  } while (record.batch.groups.empty());
  record.carried = std::move(open);
  refill(record, times, grades);
  if (config_.rollout.partial)
    record.partial = count_partial(record.batch, record.carried, record.random_step);
  warn_of_failed_grades(record.batch);
  give_up_without_grades(grades);
}

// Dynamic sampling: groups without a signal are replaced by groups of further prompts that have
// one, as far as rollout.refill rounds give any. What is left without a signal stays. A further
// group that has not ended is carried, like any other.
void Trainer::refill(StepRecord& record, StepTimes& times, GradeCounts& grades) {
  auto drawn = static_cast<std::size_t>(config_.rollout.prompts_per_step);
  for (std::int64_t round = 0; round < config_.rollout.refill; ++round) {
    std::vector<std::size_t> dull;
    for (std::size_t p = 0; p < record.batch.groups.size(); ++p)
      if (!has_signal(record.batch.groups[p])) dull.push_back(p);
    if (dull.empty()) return;
    RolledOut fresh =
        roll_out_together(record, open_groups(next_prompts(dull.size(), drawn)), times, grades);
    drawn += dull.size();
    std::ranges::move(fresh.open, std::back_inserter(record.carried));
    ++record.refill.rounds;
    std::size_t next = 0;
    for (std::size_t p = 0; p < fresh.batch.groups.size(); ++p) {
      const bool taken = has_signal(fresh.batch.groups[p]);
      ResponseGroup& group = taken ? record.batch.groups[dull[next]] : fresh.batch.groups[p];
      for (const Response& response : group.responses)
        record.refill.discarded_tokens += std::ssize(response.ids);
      if (!taken) continue;
      group = std::move(fresh.batch.groups[p]);
      record.prompts.prompts[dull[next++]] = std::move(fresh.prompts.prompts[p]);
      ++record.refill.groups;
    }
  }
}

// Each rank its share of the groups; then every rank has all responses.
RolledOut Trainer::roll_out_together(const StepRecord& record, std::vector<OpenGroup> groups,
                                     StepTimes& times, GradeCounts& grades) {
  Rollouts all;
  if (parts_.ranks.size() == 1) {
    all = roll_out_share(record, groups, times);
  } else {
    all = join_rollouts(gather_agreed(parts_.ranks, [&] {
      MessageWriter own;
      const std::span<const OpenGroup> share =
          share_of(groups, static_cast<std::size_t>(config_.rollout.group_size),
                   static_cast<std::size_t>(parts_.ranks.rank()),
                   static_cast<std::size_t>(parts_.ranks.size()));
      with_tensor_errors([&] { write(own, roll_out_share(record, share, times)); });
      parts_.ranks.enter(fmt::format("exchange of step {}", record.step));
      return own.bytes();
    }));
  }
  for (const std::string& text : all.warnings)
    parts_.recorder.warn(text);
  grades.asked += all.grades.asked;
  grades.graded += all.grades.graded;
  if (!all.grades.last_reason.empty()) grades.last_reason = all.grades.last_reason;
  return settle(std::move(groups), std::move(all.batch),
                {.step = record.random_step, .track = config_.rollout.partial});
}

Rollouts Trainer::roll_out_share(const StepRecord& record, std::span<const OpenGroup> groups,
                                 StepTimes& times) {
  Stopwatch clock;
  StepRecord own;
  StepSampling how{.stops = parts_.stops};
  if (config_.rollout.partial) how.pause_after = config_.rollout.partial_tokens;
  for (const OpenGroup& group : groups) {
    own.prompts.prompts.push_back(group.prompt);
    how.begun.push_back(group.responses);
  }
  own.step = record.step;
  own.random_step = record.random_step;
  own.lr = record.lr;
  parts_.ranks.enter(fmt::format("sampling of step {}", record.step));
  own.batch = sample(own.prompts, std::move(how));  // graded while others decode
  times.generate += clock.lap();
  parts_.ranks.enter(fmt::format("grading of step {}", record.step));
  Rollouts found;
  found.grades = grade(own);
  found.warnings = parts_.grader.take_warnings();
  found.batch = std::move(own.batch);
  times.reward += clock.lap();
  return found;
}

ResponseBatch Trainer::sample(const PromptBatch& prompts, StepSampling how) {
  ResponseBatch batch;
  state_.model.make_passes({}, [&] {
    if (prompts.prompts.empty()) return;  // more ranks than prompts
    batch = sampler_.generate(
        state_.model, prompts,
        [&](std::size_t p, const ResponseGroup& group) {
          grading_.submit(p, *prompts.prompts[p].problem, group.responses);
        },
        std::move(how));
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
