#include "trainer/trainer.h"

#include <cmath>
#include <map>

#include "algo/gate_signal.h"
#include "core/check.h"
#include "core/stopwatch.h"
#include "inference/scorer.h"
#include "model/not_finite.h"
#include "ops/device.h"
#include "ops/tensor_errors.h"
#include "run/checkpoint/checkpoint.h"

namespace antisd {
namespace {

constexpr std::size_t kReasonsShown = 4;  // of failed grades, in one warning

// The prompts that this process rolls out; each keeps its index in the step.
PromptBatch own_share(PromptBatch all, const Communicator& processes) {
  const std::size_t count = all.prompts.size(), size = static_cast<std::size_t>(processes.size()),
                    rank = static_cast<std::size_t>(processes.rank());
  const auto begin = all.prompts.begin();
  PromptBatch own{.step = all.step, .prompts = {}};
  own.prompts.assign(std::make_move_iterator(begin + std::ptrdiff_t(rank * count / size)),
                     std::make_move_iterator(begin + std::ptrdiff_t((rank + 1) * count / size)));
  return own;
}

}  // namespace

bool evaluation_due(const RunConfig& config, std::int64_t step) {
  const std::int64_t every = config.eval.every;
  return every > 0 && (step % every == 0 || step == config.train.steps);
}

Trainer::Trainer(TrainerParts parts)
    : parts_(std::move(parts)),
      config_(parts_.config),
      state_(parts_.state),
      method_(resolve_method(config_.method, config_.loss)),
      schedule_(make_schedule(config_.optim, config_.train.steps)),
      sampler_(config_.rollout, static_cast<std::uint64_t>(config_.train.seed), parts_.stop_ids,
               parts_.renderer.tokenizer()),
      grader_(parts_.grader, config_.reward),
      context_(config_.context, task_of(config_.reward, config_.data),
               static_cast<std::uint64_t>(config_.train.seed), parts_.renderer),
      updater_({.minibatches = config_.train.minibatches,
                .epochs = config_.train.epochs,
                .micro_batch_tokens = config_.train.micro_batch_tokens,
                .gradient_checkpointing = config_.model.gradient_checkpointing,
                .temperature = config_.rollout.temperature},
               parts_.processes),
      peak_flops_(peak_flops(state_.model.device())),
      keeper_(config_.checkpoint, parts_.recorder, state_.step),
      alike_(method_) {
  refuse_several(parts_.processes);
  ANTISD_CHECK(config_.loss.kl_coef == 0 || parts_.reference != nullptr);
  ANTISD_CHECK(method_.slow_teacher() == state_.teacher.has_value());
}

bool Trainer::run(const std::function<bool()>& stop) {
  ProgressBar bar(
      parts_.console,
      {.label = "train", .unit = "step", .total = config_.train.steps, .done = state_.step});
  evaluate_start();
  while (state_.step < config_.train.steps && !stop()) {
    step_or_save();
    bar.update(state_.step, {{"reward", last_metrics_.find("critic/rewards/mean").value_or(NAN)},
                             {"tokens", last_metrics_.find("response_length/mean").value_or(NAN)},
                             {"lambda", last_metrics_.find("antisd/lambda").value_or(0)}});
    if (keeper_.due(state_.step) || keeper_.is_peak(last_metrics_, state_.best)) save();
  }
  if (!keeper_.saved(state_.step)) save_last(stop);
  bar.finish();
  const bool evaluation_stopped = evaluation_missing_ && stop();
  return state_.step >= config_.train.steps && !evaluation_stopped;
}

// A step that fails never was: it leaves cursor and gate as they were, and, unless one of its
// mini-batches was applied, the weights. Then what the steps before learnt is not lost with it,
// unless their weights do not compute finite numbers.
void Trainer::step_or_save() {
  const Json cursor = state_.prompts.state();
  const GateState gate = state_.gate.state();
  const std::int64_t done = state_.step, updates = state_.optimizer.steps();
  try {
    with_tensor_errors([&] { step(); });
    if (state_.optimizer.steps() > updates) keeper_.proved(state_.best);
  } catch (const NotFinite& error) {
    throw keeper_.not_finite_error(error, done, schedule_.at(done),
                                   state_.optimizer.steps() == updates);
  } catch (const Error&) {
    if (state_.step == done) {
      state_.prompts.restore(cursor);
      state_.gate.restore(gate);
    }
    const bool whole = state_.step > done || state_.optimizer.steps() == updates;
    if (whole && !keeper_.saved(state_.step)) {
      parts_.recorder.info(fmt::format("step {} failed; saving step {}", done + 1, state_.step));
      save();
    }
    throw;
  }
}

void Trainer::step() {
  Stopwatch clock, whole;
  StepTimes times{.save = keeper_.take_seconds()};
  const PromptBatch prompts = next_prompts();  // x
  RolloutBatch batch = sample(prompts);        // y; groups are graded while others decode
  times.generate = clock.lap();
  grade(prompts, batch);  // R
  times.reward = clock.lap();

  const ContextBatch contexts = build_contexts(prompts, batch);              // c
  const std::vector<TokenScores> teacher = score_contexts(contexts, batch);  // t, H_T
  const ScoresBefore before = score_before(prompts, batch);  // for the few methods that need it
  times.score = clock.lap();

  const GateReading gate = state_.gate.observe(gate_statistic_of(teacher, before.student));  // g
  const Shaping shaping =  // A, lambda
      shape(method_, group_advantages(batch), teacher, gate, state_.warmup_u);
  times.advantage = clock.lap();

  UpdateResult update;
  const double lr = schedule_.at(state_.step);
  const StepRecord record{state_.step + 1, prompts, batch, contexts, shaping, gate,
                          update,          lr,      times};
  update = update_policy(record, before);  // A - lambda phi(t - s), s from its own forward
  times.update = clock.lap();
  times.step = whole.lap();

  if (state_.teacher && update.updates > 0)
    state_.teacher->follow(state_.model, method_.sdpo.teacher_ema);
  if (gate.position == GatePosition::kWarmingUp) state_.warmup_u.add(update.totals.u);
  ++state_.step;
  record_step(record);
}

PromptBatch Trainer::next_prompts() {
  const std::vector<std::size_t> indices =
      state_.prompts.next(static_cast<std::size_t>(config_.rollout.prompts_per_step));
  return own_share(parts_.renderer.batch(state_.random_step(), parts_.problems, indices),
                   parts_.processes);
}

RolloutBatch Trainer::sample(const PromptBatch& prompts) {
  RolloutBatch batch =
      sampler_.generate(state_.model, prompts, [&](std::size_t p, const RolloutGroup& group) {
        grader_.start(p, prompts.prompts[p], group);
      });
  sampler_.release();
  return batch;
}

void Trainer::grade(const PromptBatch& prompts, RolloutBatch& batch) {
  GradeCounts counts;
  try {
    counts = grader_.finish(batch);
  } catch (const BadRewardError& error) {
    const ContextBatch contexts;
    Shaping shaping;
    shaping.advantages.resize(batch.size());
    UpdateResult nothing;
    nothing.student.resize(batch.size());
    nothing.token_advantage.resize(batch.size());
    const StepRecord failed{state_.step + 1, prompts, batch,    contexts,   shaping,
                            GateReading(),   nothing, /*lr=*/0, StepTimes()};
    throw BadRewardError(fmt::format("step {}: {}", failed.step,
                                     dump_culprit(failed, error.rollout, error.problem())),
                         error.rollout);
  }
  for (const std::string& text : parts_.grader.take_warnings())
    parts_.recorder.warn(text);
  warn_of_failed_grades(batch);
  give_up_without_grades(counts);
}

// Nothing is learnt while the grader is broken; a run that goes on like that looks alive.
void Trainer::give_up_without_grades(const GradeCounts& own) {
  const std::vector<double> all = parts_.processes.gather(
      std::vector<double>{static_cast<double>(own.asked), static_cast<double>(own.graded)});
  double asked = 0, graded = 0;
  for (std::size_t i = 0; i < all.size(); i += 2) {
    asked += all[i];
    graded += all[i + 1];
  }
  if (asked == 0) return;  // all were truncated: says nothing about the grader
  ungraded_steps_ = graded > 0 ? 0 : ungraded_steps_ + 1;
  const RewardConfig& reward = config_.reward;
  if (ungraded_steps_ < reward.give_up_after) return;
  throw RunError(
      fmt::format("step {}: {} gave not one grade in {} steps in a row, the last time because: {}",
                  state_.step + 1,
                  reward.kind == "command" ? fmt::format("reward.command = `{}`", reward.command)
                                           : fmt::format("reward.kind = \"{}\"", reward.kind),
                  ungraded_steps_, own.last_reason),
      {.where = "reward",
       .remedy = "mend the grader and go on with --resume, or raise reward.give_up_after"});
}

ContextBatch Trainer::build_contexts(const PromptBatch& prompts, const RolloutBatch& batch) const {
  return method_.needs_teacher() ? context_.build(prompts, batch) : ContextBatch();
}

std::vector<TokenScores> Trainer::score_contexts(const ContextBatch& contexts,
                                                 const RolloutBatch& batch) const {
  if (!method_.needs_teacher()) return {};
  const std::int64_t positions = state_.model.shape().max_positions;
  for (std::size_t r = 0; r < batch.size(); ++r) {
    const std::int64_t tokens =
        std::ssize(contexts.contexts[r].prompt_ids) + std::ssize(batch[r].response_ids);
    if (tokens <= positions) continue;
    throw InputError(
        fmt::format("a teacher's prompt and response have {} tokens; the model has {} positions",
                    tokens, positions),
        {.remedy = "lower rollout.max_sequence_tokens or context.max_solution_tokens"});
  }
  return score_rollouts(teacher(), batch, [&](std::size_t r) -> const std::vector<TokenId>& {
    return contexts.contexts[r].prompt_ids;
  });
}

Trainer::ScoresBefore Trainer::score_before(const PromptBatch& prompts,
                                            const RolloutBatch& batch) const {
  const auto prompt_of = [&](std::size_t r) -> const std::vector<TokenId>& {
    return prompts.prompts[r / batch.group_size()].ids;
  };
  ScoresBefore before;
  if (updater_.needs_old_scores() || method_.gates_on_student())
    before.student = score_rollouts(state_.model, batch, prompt_of);
  if (config_.loss.kl_coef > 0)
    before.reference = score_rollouts(*parts_.reference, batch, prompt_of);
  return before;
}

std::vector<TokenScores> Trainer::score_rollouts(
    const CausalLm& model, const RolloutBatch& batch,
    const std::function<const std::vector<TokenId>&(std::size_t)>& prompt_of) const {
  std::vector<ScoreRequest> requests;
  RolloutNumbers graded;
  for (std::size_t r = 0; r < batch.size(); ++r) {
    if (batch[r].grade.failed()) continue;
    graded.push_back(r);
    requests.push_back({prompt_of(r), batch[r].response_ids});
  }
  std::vector<TokenScores> scores = score(model, requests,
                                          {.temperature = config_.rollout.temperature,
                                           .max_batch_tokens = config_.train.micro_batch_tokens,
                                           .pack = {}});
  std::vector<TokenScores> by_rollout(batch.size());
  for (std::size_t i = 0; i < graded.size(); ++i)
    by_rollout[graded[i]] = std::move(scores[i]);
  return by_rollout;
}

GateInput Trainer::gate_statistic_of(std::span<const TokenScores> teacher,
                                     std::span<const TokenScores> student) const {
  const std::vector<float> own = gate_values(method_, teacher, student);
  const std::vector<double> all =
      parts_.processes.gather(std::vector<double>(own.begin(), own.end()));
  return gate_statistic(method_.gate, std::vector<float>(all.begin(), all.end()));
}

UpdateResult Trainer::update_policy(const StepRecord& record, const ScoresBefore& before) {
  UpdateInput input{.prompts = record.prompts, .batch = record.batch, .shaping = record.shaping};
  if (updater_.needs_old_scores()) input.old_scores = before.student;
  input.reference = before.reference;
  input.contexts = record.contexts.contexts;
  input.teacher = &teacher();
  try {
    return updater_.step(state_.model, state_.optimizer, record.lr, input);
  } catch (const NotFiniteError& error) {
    const std::size_t r = error.rollout;
    UpdateResult seen;
    seen.student.resize(record.batch.size());
    seen.student[r] = error.student;
    seen.token_advantage.resize(record.batch.size());
    const StepRecord failed{record.step,    record.prompts, record.batch, record.contexts,
                            record.shaping, record.gate,    seen,         record.lr,
                            record.times};
    throw NotFiniteError(dump_culprit(failed, r, error.problem()), r);  // the caller adds the step
  }
}

// Writes the response down that stopped the step; what is wrong, and where it is to be found.
std::string Trainer::dump_culprit(const StepRecord& record, std::size_t rollout,
                                  const std::string& problem) {
  const std::filesystem::path file = parts_.recorder.failure(record, rollout, problem);
  const std::size_t group_size = record.batch.group_size();
  return fmt::format("{}; it came from problem '{}', sample {}, see {}", problem,
                     record.prompts.prompts[rollout / group_size].id, rollout % group_size,
                     file.string());
}

void Trainer::warn_of_failed_grades(const RolloutBatch& batch) {
  std::map<std::string, int> reasons;
  int failed = 0;
  for (std::size_t r = 0; r < batch.size(); ++r) {
    if (!batch[r].grade.failed()) continue;
    ++failed;
    ++reasons[batch[r].grade.reason];
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
      fmt::format("step {}: {} of {} responses could not be graded and are left "
                  "out: {}",
                  state_.step + 1, failed, batch.size(), text));
}

// What the warm-up found, once.
void Trainer::tell_of_gate(const StepRecord& record) {
  if (!record.gate.calibrated) return;
  const std::string found = calibration_text(method_.gate, state_.gate.state());
  if (found.empty()) return;
  const std::string text = fmt::format("step {}: {}", record.step, found);
  if (record.gate.too_small) {
    parts_.recorder.warn(text);
  } else {
    parts_.recorder.info(text);
  }
}

void Trainer::record_step(const StepRecord& record) {
  tell_of_gate(record);
  if (record.update.updates == 0) {
    ++state_.skipped;
    parts_.recorder.warn(
        fmt::format("step {}: no response was graded, nothing was learnt", record.step));
  } else if (method_.gate.signal != GateSignal::kNone && std::isnan(record.gate.statistic)) {
    parts_.recorder.warn(fmt::format("step {}: no response that the gate could read", record.step));
  }
  if (const auto warning = alike_.observe(record.batch))
    parts_.recorder.warn(fmt::format("step {}: {}", record.step, *warning));
  last_metrics_ = {};
  last_metrics_.set("training/epoch", static_cast<double>(state_.prompts.epoch()));
  last_metrics_.set("training/skipped_steps", static_cast<double>(state_.skipped));
  last_metrics_.add(step_metrics(record, parts_.processes));
  if (const auto chosen = chosen_statistic(state_.gate.state()); chosen && method_.gated)
    last_metrics_.set("antisd/gate_reads_mean", *chosen == GateStatistic::kMean ? 1 : 0);
  if (peak_flops_) {
    // Forward and backward of the update; layers that are computed anew do not count.
    const double flops = 6 * static_cast<double>(state_.model.shape().active_parameter_count()) *
                         record.update.tokens / parts_.processes.size();
    last_metrics_.set("perf/mfu", flops / record.times.update / *peak_flops_);
  }
  last_metrics_.set("perf/max_memory_allocated_gb", peak_memory_gb(state_.model.device()));
  if (parts_.evaluate && evaluation_due(config_, record.step))
    last_metrics_.add(evaluate(record.step).value_or(MetricSet()));
  parts_.recorder.metrics(record.step, last_metrics_);
  parts_.recorder.rollouts(record);
}

std::optional<MetricSet> Trainer::evaluate(std::int64_t step) {
  std::optional<MetricSet> found = parts_.evaluate(step);
  evaluation_missing_ = !found;
  return found;
}

// Step 0, and the evaluation that a signal stopped at the end of the step the run goes on from.
void Trainer::evaluate_start() {
  if (!parts_.evaluate || !evaluation_due(config_, state_.step)) return;
  const std::optional<MetricSet> row = parts_.recorder.find_metrics(state_.step);
  if (row && row->find("timing_s/eval")) return;
  const std::optional<MetricSet> found = evaluate(state_.step);
  if (!found) return;
  parts_.recorder.amend(state_.step, *found);
  if (state_.step == 0) return;
  last_metrics_ = *found;
  if (keeper_.is_peak(*found, state_.best)) save();  // its checkpoint has to know
}

CheckpointKeeper::Write Trainer::writer() const {
  return [this](const std::filesystem::path& folder) {
    save_checkpoint(folder, state_.step, parts_of(state_, parts_.origin), to_json(state_));
  };
}

void Trainer::save() {
  try {
    keeper_.save(state_.step, last_metrics_, state_.best, writer());
  } catch (const NotFinite& error) {
    throw diverged(error);
  }
}

void Trainer::save_last(const std::function<bool()>& stop) {
  try {
    keeper_.save_last(state_.step, last_metrics_, state_.best, writer(), stop);
  } catch (const NotFinite& error) {
    throw diverged(error);
  }
}

// Of the weights that the last step left: it is that step which failed.
RunError Trainer::diverged(const NotFinite& error) const {
  const std::int64_t before = state_.step - 1;
  return keeper_.not_finite_error(error, before, schedule_.at(before), /*untouched=*/false);
}

}  // namespace antisd
