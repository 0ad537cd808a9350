#include "trainer/trainer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "algo/gate_signal.h"
#include "algo/reward_shaping.h"
#include "core/check.h"
#include "core/stopwatch.h"
#include "dist/agreement.h"
#include "dist/message.h"
#include "inference/together.h"
#include "model/not_finite.h"
#include "ops/device.h"
#include "ops/tensor_errors.h"
#include "run/checkpoint/checkpoint.h"

namespace antisd::inline trainer {
namespace {

// `waits` of this rank, one for each call. The rank that came last to a call waited least.
RankTimes over_ranks(Communicator& ranks, const StepTimes& own, const std::vector<double>& waits) {
  constexpr std::array kPhases = {&StepTimes::generate,  &StepTimes::reward, &StepTimes::score,
                                  &StepTimes::advantage, &StepTimes::update, &StepTimes::step,
                                  &StepTimes::save,      &StepTimes::ranks};
  std::vector<double> seconds;
  for (const auto phase : kPhases)
    seconds.push_back(own.*phase);
  const std::vector<double> all = gather_values(ranks, seconds);
  RankTimes times{.ranks = ranks.size(), .most = own, .mean = {}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto phase = kPhases[i % kPhases.size()];
    times.most.*phase = std::max(times.most.*phase, all[i]);
    times.mean.*phase += all[i] / ranks.size();
  }
  std::vector<double> least = waits;
  const std::vector<double> all_waits = gather_values(ranks, waits);
  for (std::size_t i = 0; i < all_waits.size(); ++i)
    least[i % least.size()] = std::min(least[i % least.size()], all_waits[i]);
  times.exchange = std::accumulate(least.begin(), least.end(), 0.0);
  return times;
}

void add_evaluation(StepRow& row, const EvaluationResult& evaluation) {
  row.metrics.add(evaluation.metrics);
  row.metrics.set("timing_s/eval", evaluation.seconds);
  row.evaluated = true;
}

bool holds_evaluation(const MetricSet& row) {
  return std::ranges::any_of(row.values(),
                             [](const Metric& metric) { return metric.name.starts_with("val-"); });
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
      grading_(parts_.grader, {.workers = static_cast<int>(config_.reward.workers),
                               .truncated_reward = config_.reward.truncated}),
      context_(config_.context, task_of(config_.reward, config_.data),
               static_cast<std::uint64_t>(config_.train.seed), parts_.renderer),
      updater_({.minibatches = config_.train.minibatches,
                .epochs = config_.train.epochs,
                .micro_batch_tokens = config_.train.micro_batch_tokens,
                .micro_batches = config_.train.micro_batches,
                .kept_layers = parts_.kept_layers,
                .temperature = config_.rollout.temperature,
                .sums = sum_order(config_, state_.model.device()),
                .masks = config_.loss.rollout_correction == "mask"}),
      peak_flops_(peak_flops(state_.model.device())),
      memory_(state_.model.device()),
      keeper_(config_.checkpoint, parts_.recorder, parts_.ranks, state_.step),
      alike_(method_),
      bonus_ids_(bonus_ids(parts_.renderer.tokenizer(), config_.method.bonus.words)) {
  ANTISD_CHECK(!keeps_reference(config_) || parts_.reference != nullptr);
  ANTISD_CHECK(method_.slow_teacher() == state_.teacher.has_value());
  ANTISD_CHECK(method_.other_teacher == (parts_.other_teacher != nullptr));
  render_carried();
}

bool Trainer::run(const std::function<bool()>& stop) {
  ProgressBar bar(
      parts_.console,
      {.label = "train", .unit = "step", .total = config_.train.steps, .done = state_.step});
  const auto any_stops = [&] { return any_of(parts_.ranks, stop()); };
  evaluate_start();
  while (state_.step < config_.train.steps && !any_stops()) {
    save_on_error([&] {
      const StepRecord record = step();
      tell_of_step(record);
      last_row_ = {metrics_of(record)};
      if (const std::optional<EvaluationResult> evaluation = evaluate_if_due())
        add_evaluation(last_row_, *evaluation);
      parts_.recorder.metrics(record.step, last_row_.metrics);
      parts_.recorder.note(sample_line(record));
      parts_.recorder.rollouts(record.step, record.batch.size(),
                               [&](std::size_t r) { return rollout_row(record, r); });
    });
    bar.update(state_.step,
               {{"reward", last_row_.metrics.find("critic/rewards/mean").value_or(NAN)},
                {"tokens", last_row_.metrics.find("response_length/mean").value_or(NAN)},
                {"lambda", last_row_.metrics.find("antisd/lambda").value_or(0)}});
    if (keeper_.due(state_.step) || keeper_.is_peak(last_row_, state_.best)) begin_save();
  }
  finish_save();
  if (!keeper_.saved(state_.step)) save_last(stop);
  bar.finish();
  const bool evaluation_stopped = evaluation_missing_ && any_stops();
  return state_.step >= config_.train.steps && !evaluation_stopped;
}

// A failed step leaves no trace: cursor and gate stay as they were, and the weights too, unless one
// of its mini-batches was applied. So the result of earlier steps is saved, unless their weights do
// not compute finite values.
void Trainer::save_on_error(const std::function<void()>& work) {
  const Json cursor = state_.prompts.state();
  const GateState gate = state_.gate.state();
  const std::int64_t done = state_.step, updates = state_.optimizer.steps();
  try {
    with_tensor_errors(work);
    if (state_.optimizer.steps() > updates) keeper_.proved(state_.best);
  } catch (const NotFinite& error) {
    finish_save();  // what it wrote counts among the good checkpoints, or not
    throw keeper_.not_finite_error(error, done, schedule_.at(done),
                                   state_.optimizer.steps() == updates);
  } catch (const Diverged&) {
    throw;
  } catch (const RankLost&) {
    throw;  // a save needs all ranks
  } catch (const FailedAlone&) {
    throw;
  } catch (const Error&) {
    if (state_.step == done) {
      state_.prompts.restore(cursor);
      state_.gate.restore(gate);
    }
    const bool whole = state_.step > done || state_.optimizer.steps() == updates;
    finish_save();
    if (whole && !keeper_.saved(state_.step)) {
      parts_.recorder.info(fmt::format("step {} failed; saving step {}", done + 1, state_.step));
      begin_save();
      finish_save();
    }
    throw;
  }
}

StepRecord Trainer::step() {
  Stopwatch clock, whole;
  StepRecord record{.step = state_.step + 1,
                    .random_step = state_.random_step(),
                    .lr = schedule_.at(state_.step),
                    .max_prompt_tokens = config_.data.max_prompt_tokens};
  parts_.ranks.take_waits();  // those between the steps
  StepTimes times;
  times.save = keeper_.take_seconds();
  memory_.lap();
  roll_out(record, times);  // x, y, R
  const PromptBatch& prompts = record.prompts;
  ResponseBatch& batch = record.batch;
  record.memory.generate = memory_.lap();
  clock.lap();

  parts_.ranks.enter(fmt::format("scoring of step {}", record.step));
  build_contexts(record);          // c
  score_contexts(prompts, batch);  // t, H_T
  score_before(prompts, batch);    // for methods that need it
  times.score = clock.lap();
  record.memory.score = memory_.lap();

  record.gate = state_.gate.observe(gate_statistic_of(batch));                  // g
  set_group_advantages(prompts, batch);                                         // A
  record.shaping = make_shaping(method_, record.gate, state_.warmup_u, batch);  // lambda
  record.shaping.bonus_ids = bonus_ids_;
  times.advantage = clock.lap();

  finish_save();  // it was written while the step sampled
  const double waited = keeper_.take_seconds();
  times.save += waited;
  clock.lap();
  parts_.ranks.enter(fmt::format("update of step {}", record.step));
  update_policy(record);  // A - lambda phi(t - s), s from its own forward
  times.update = clock.lap();
  record.memory.update = memory_.lap();
  times.step = whole.lap() - waited;
  const std::vector<double> waits = parts_.ranks.take_waits();
  times.ranks = std::accumulate(waits.begin(), waits.end(), 0.0);
  record.times = over_ranks(parts_.ranks, times, waits);

  if (state_.teacher && record.update.updates > 0)
    state_.teacher->follow(state_.model, state_.optimizer, method_.teacher_ema);
  if (record.gate.position == GatePosition::kWarmingUp)
    state_.warmup_u.add(record.update.sums.at("u"));
  state_.carried = std::move(record.carried);
  ++state_.step;
  return record;
}

// What context.command says of each response, on every rank: each asks for its share. A failure
// costs that context alone.
std::vector<std::string> Trainer::ask_for_contexts(StepRecord& record) {
  if (parts_.context_command == nullptr) return {};
  const ResponseBatch& batch = record.batch;
  const std::vector<std::string> all = gather_agreed(parts_.ranks, [&] {
    std::vector<Json> requests;
    std::vector<std::size_t> numbers;
    for (auto r = static_cast<std::size_t>(parts_.ranks.rank()); r < batch.size();
         r += static_cast<std::size_t>(parts_.ranks.size())) {
      if (batch[r].verdict.failed()) continue;
      numbers.push_back(r);
      requests.push_back(
          context_request(*record.prompts.prompts[r / batch.group_size()].problem, batch[r]));
    }
    const std::vector<ContextAnswer> answers = parts_.context_command->ask(requests);
    MessageWriter own;
    for (std::size_t i = 0; i < answers.size(); ++i)
      own.add(std::uint64_t{numbers[i]}).add(answers[i].text).add(answers[i].reason);
    return own.bytes();
  });
  std::vector<std::string> told(batch.size());
  std::int64_t failed = 0;
  std::string reason;
  for (const std::string& message : all) {
    for (MessageReader reader(message); !reader.empty();) {
      const auto number = reader.take<std::uint64_t>();
      told[number] = reader.take_text();
      const std::string problem = reader.take_text();
      if (problem.empty()) continue;
      if (failed++ == 0) reason = problem;
    }
  }
  record.failed_contexts = failed;
  if (failed > 0)
    parts_.recorder.warn(
        fmt::format("step {}: {} of {} responses have the context of context.fallback = \"{}\": {}",
                    record.step, failed, batch.size(), config_.context.fallback, reason));
  return told;
}

void Trainer::build_contexts(StepRecord& record) {
  if (!method_.needs_teacher()) return;
  ResponseBatch& batch = record.batch;
  const std::int64_t positions = most_positions();
  const std::vector<std::string> told = ask_for_contexts(record);
  const std::int64_t cut = context_.build(record.prompts, batch, positions, told);
  check_lengths(batch);
  if (cut == 0 || cut_said_) return;
  cut_said_ = true;
  parts_.recorder.warn(fmt::format(
      "step {}: {} of {} solutions shown to the teacher were cut in the middle: they are longer "
      "than context.max_solution_tokens = {}, or the prompt and the response than the model's {} "
      "positions. Later ones are cut without a message",
      state_.step + 1, cut, batch.size(), config_.context.max_solution_tokens, positions));
}

void Trainer::check_lengths(const ResponseBatch& batch) const {
  const std::int64_t positions = most_positions();
  for (std::size_t r = 0; r < batch.size(); ++r) {
    const std::int64_t tokens = std::ssize(batch[r].context.prompt_ids) + std::ssize(batch[r].ids);
    if (tokens <= positions) continue;
    throw InputError(
        fmt::format("a teacher's prompt and response have {} tokens; the model has {} positions",
                    tokens, positions),
        {.remedy = "lower rollout.max_sequence_tokens or context.max_solution_tokens"});
  }
}

// A divergence's objective runs its teacher itself; the record needs a separate pass only if the
// teacher changes with each mini-batch. Another model comes to the device for its passes alone.
void Trainer::score_contexts(const PromptBatch& prompts, ResponseBatch& batch) {
  const bool moves = method_.distils && method_.teacher_moves() && updater_.needs_old_scores();
  const bool looks_before = method_.distils && method_.other_teacher;
  if (!method_.scores_teacher() && !moves && !looks_before) return;
  std::optional<TeacherInUse> here;
  if (parts_.other_teacher != nullptr)
    agree(parts_.ranks, [&] { with_tensor_errors([&] { here.emplace(*parts_.other_teacher); }); });
  if (looks_before) {
    teacher_states_ =
        updater_.look_as_teacher(teacher(), prompts, batch, method_.loss, parts_.ranks);
    return;
  }
  score_responses(
      teacher(), batch, &Response::teacher,
      [&](std::size_t r) -> const std::vector<TokenId>& { return batch[r].context.prompt_ids; });
}

void Trainer::score_before(const PromptBatch& prompts, ResponseBatch& batch) const {
  const auto prompt_of = [&](std::size_t r) -> const std::vector<TokenId>& {
    return prompts.prompts[r / batch.group_size()].ids;
  };
  if (updater_.needs_old_scores() || method_.gates_on_student() || config_.reward.kl_coef > 0)
    score_responses(state_.model, batch, &Response::before, prompt_of);
  if (keeps_reference(config_))
    score_responses(*parts_.reference, batch, &Response::reference, prompt_of);
}

void Trainer::score_responses(
    const CausalLm& model, ResponseBatch& batch, TokenScores Response::*field,
    const std::function<const std::vector<TokenId>&(std::size_t)>& prompt_of) const {
  std::vector<ScoreRequest> requests;
  ResponseNumbers graded;
  for (std::size_t r = 0; r < batch.size(); ++r) {
    if (batch[r].verdict.failed()) continue;
    graded.push_back(r);
    requests.push_back({prompt_of(r), batch[r].ids});
  }
  std::vector<TokenScores> scores =
      score_together(parts_.ranks, model, requests,
                     {.temperature = config_.rollout.temperature,
                      .max_batch_tokens = config_.train.micro_batch_tokens,
                      .pack = {}});
  for (std::size_t i = 0; i < graded.size(); ++i)
    batch[graded[i]].*field = std::move(scores[i]);
}

void Trainer::set_group_advantages(const PromptBatch& prompts, ResponseBatch& batch) const {
  std::vector<std::int64_t> prompt_tokens;
  for (const Prompt& prompt : prompts.prompts)
    prompt_tokens.push_back(std::ssize(prompt.ids));
  shape_rewards(config_, prompt_tokens, batch);
  set_advantages(batch, config_.advantage);
}

GateInput Trainer::gate_statistic_of(const ResponseBatch& batch) const {
  return gate_statistic(method_.gate, gate_values(method_, scores_of(batch, &Response::teacher),
                                                  scores_of(batch, &Response::before)));
}

void Trainer::update_policy(StepRecord& record) {
  try {
    record.update = updater_.step(state_.model, state_.optimizer, record.lr,
                                  {.prompts = record.prompts,
                                   .batch = record.batch,
                                   .shaping = record.shaping,
                                   .teacher = &teacher(),
                                   .states = teacher_states_ ? &*teacher_states_ : nullptr});
    teacher_states_.reset();
  } catch (const NotFiniteError& error) {
    Response& culprit = record.batch[error.number];
    culprit.student = error.student;
    if (culprit.teacher.logp.empty()) culprit.teacher = error.teacher;
    culprit.token_advantage.clear();  // it was not applied
    throw NotFiniteError(dump_culprit(record, error.number, error.problem()),
                         error.number);  // the caller adds the step
  }
}

// Writes the response that stopped the step to a file; returns what is wrong, and the file.
std::string Trainer::dump_culprit(const StepRecord& record, std::size_t number,
                                  const std::string& problem) {
  Json row = rollout_row(record, number);
  row["failure"] = problem;
  const std::filesystem::path file = parts_.recorder.failure(record.step, row);
  const std::size_t group_size = record.batch.group_size();
  return fmt::format("{}; it came from problem '{}', sample {}, see {}", problem,
                     record.prompts.prompts[number / group_size].id, number % group_size,
                     file.string());
}

// Reports the result of the warm-up, once.
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

void Trainer::tell_of_step(const StepRecord& record) {
  tell_of_gate(record);
  if (record.update.updates == 0) {
    ++state_.skipped;
    parts_.recorder.warn(fmt::format("step {}: no response was graded{}, nothing was learnt",
                                     record.step,
                                     config_.loss.overlong_filter ? " or all were cut off" : ""));
  } else if (method_.gate.signal != GateSignal::kNone && std::isnan(record.gate.statistic)) {
    parts_.recorder.warn(fmt::format("step {}: no response that the gate could read", record.step));
  }
  if (const auto warning = alike_.observe(record.batch))
    parts_.recorder.warn(fmt::format("step {}: {}", record.step, *warning));
}

MetricSet Trainer::metrics_of(const StepRecord& record) {
  MetricSet metrics;
  metrics.set("training/epoch", static_cast<double>(state_.prompts.epoch()));
  metrics.set("training/skipped_steps", static_cast<double>(state_.skipped));
  metrics.add(step_metrics(record));
  if (const auto chosen = chosen_statistic(state_.gate.state()); chosen && method_.gated)
    metrics.set("antisd/gate_reads_mean", *chosen == GateStatistic::kMean ? 1 : 0);
  if (peak_flops_) {
    // Forward and backward of the update; recomputed layers do not count.
    const double flops =
        state_.model.shape().training_flops() * record.update.tokens / record.times.ranks;
    metrics.set("perf/mfu", flops / record.times.most.update / *peak_flops_);
  }
  metrics.set("perf/max_memory_allocated_gb", memory_.most());
  return metrics;
}

std::optional<EvaluationResult> Trainer::evaluate_if_due() {
  if (!parts_.evaluate || !evaluation_due(config_, state_.step)) return std::nullopt;
  std::optional<EvaluationResult> found = parts_.evaluate(state_.step);
  evaluation_missing_ = !found;
  return found;
}

// Evaluates step 0, or repeats the evaluation that a signal stopped at the end of the resumed step.
void Trainer::evaluate_start() {
  if (!parts_.evaluate || !evaluation_due(config_, state_.step)) return;
  bool is_there = false;
  if (parts_.recorder.writes()) {
    const std::optional<MetricSet> row = parts_.recorder.find_metrics(state_.step);
    is_there = row && holds_evaluation(*row);
  }
  if (any_of(parts_.ranks, is_there)) return;
  const std::optional<EvaluationResult> evaluation = evaluate_if_due();
  if (!evaluation) return;
  StepRow found;
  add_evaluation(found, *evaluation);
  parts_.recorder.amend(state_.step, found.metrics);
  if (state_.step == 0) return;
  last_row_ = found;
  if (keeper_.is_peak(found, state_.best)) begin_save();  // the checkpoint must record it
}

// Weights, optimizer, teacher and carried groups do not change before finish_save(); the rest is
// copied.
CheckpointKeeper::Writing Trainer::writing() const {
  return {.write =
              [this, step = state_.step, saved = to_json(state_)](
                  const std::filesystem::path& folder, Communicator& ranks,
                  const std::function<void()>& call) {
                CheckpointParts checkpoint = parts_of(state_, parts_.origin);
                checkpoint.ranks = &ranks;
                checkpoint.call_ranks = call;
                save_checkpoint(folder, step, checkpoint, saved);
              },
          .help =
              [this](Communicator& ranks) {
                CheckpointParts checkpoint = parts_of(state_, parts_.origin);
                checkpoint.ranks = &ranks;
                help_save_checkpoint(checkpoint);
              }};
}

void Trainer::begin_save() {
  keeper_.begin_save(state_.step, last_row_, state_.best, [this] { return writing(); });
  if (!state_.model.has_all_layers()) finish_save();  // both need the other ranks for every layer
}

void Trainer::finish_save() {
  try {
    keeper_.finish_save(state_.best);
  } catch (const NotFinite& error) {
    throw diverged(error);
  }
}

void Trainer::save_last(const std::function<bool()>& stop) {
  try {
    keeper_.save_last(
        state_.step, last_row_, state_.best, [this] { return writing(); }, stop);
  } catch (const NotFinite& error) {
    throw diverged(error);
  }
}

// The weights are those that the last step left, so that step is the one that failed.
Diverged Trainer::diverged(const NotFinite& error) const {
  const std::int64_t before = state_.step - 1;
  const RunError told =
      keeper_.not_finite_error(error, before, schedule_.at(before), /*untouched=*/false);
  return Diverged(told.problem(), told.context());
}

}  // namespace antisd::inline trainer
