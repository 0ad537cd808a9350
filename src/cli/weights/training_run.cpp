#include "cli/weights/training_run.h"

#include <fmt/format.h>

#include "cli/weights/adapted_model.h"
#include "cli/weights/device_choice.h"
#include "cli/weights/model_parts.h"
#include "cli/weights/rank_session.h"
#include "cli/weights/shard_choice.h"
#include "cli/weights/step_threads.h"
#include "cli/weights/teacher_model.h"
#include "context/solution.h"
#include "context/templates.h"
#include "core/error.h"
#include "core/stopwatch.h"
#include "dist/agreement.h"
#include "eval/evaluator.h"
#include "hub/cache.h"
#include "io/process/supervised_command.h"
#include "model/adapter_files.h"
#include "model/weights.h"
#include "ops/tensor_errors.h"
#include "reward/context_command.h"
#include "reward/countdown_grader.h"
#include "reward/grader.h"
#include "run/checkpoint/checkpoint.h"
#include "run/checkpoint/disk_plan.h"
#include "run/run_files.h"
#include "run/stop_signals.h"
#include "trainer/trainer.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;

// The source of the run's weights.
struct Source {
  std::optional<FoundCheckpoint> resumed;  // of this run directory
  std::optional<FoundCheckpoint> parent;   // train.init_from
  fs::path model;                          // tokenizer, template and, without the others, weights
};

// A checkpoint, or a run directory, which stands for its newest complete one.
FoundCheckpoint find_parent(const fs::path& path, Recorder& recorder) {
  if (!fs::exists(path / kCheckpointsFolder)) return verify_checkpoint(path);
  const NewestCheckpoint newest = find_newest_whole(path / kCheckpointsFolder);
  warn_of_skipped(recorder, newest);
  if (newest.found) return *newest.found;
  throw InputError("the run has no complete checkpoint",
                   {.where = path.string(), .remedy = "train it further, or name a checkpoint"});
}

Source find_source(const RunConfig& config, const RunOptions& options, Recorder& recorder,
                   Communicator& ranks) {
  Source source;
  if (options.resume) {
    source.resumed =
        found_by_first(ranks, [&] { return find_checkpoint_to_resume(recorder, config, options); });
  }
  if (!source.resumed && !config.train.init_from.empty()) {
    source.parent =
        found_by_first(ranks, [&] { return find_parent(config.train.init_from, recorder); });
    recorder.info(fmt::format("starting from {}", source.parent->path.string()));
  }
  source.model = model_folder(config.model.path);
  if (source.model.empty() && source.resumed) source.model = model_files(source.resumed->path);
  if (source.model.empty() && source.parent) source.model = model_files(source.parent->path);
  if (source.model.empty()) {
    throw InputError("no model is named",
                     {.where = "model.path", .remedy = "give a Hugging Face model directory"});
  }
  refuse_adapter(source.model);
  return source;
}

CausalLm make_model(const Source& source, const RunConfig& config, at::Device device) {
  if (config.model.lora.rank > 0) return load_with_adapters(source.model, config, device);
  const at::ScalarType dtype = compute_dtype(device, config.model.dtype);
  if (!source.resumed && !source.parent) return load_model(source.model, device, dtype);
  return CausalLm(read_model_shape(source.model / "config.json"), device, dtype);
}

void restore(TrainState& state, const Source& source) {
  state.reference = fs::absolute(source.model).lexically_normal().string();
  if (source.parent) start_from(state, source.parent->path);
  if (source.resumed) resume(state, source.resumed->path);
}

std::unique_ptr<Evaluator> make_evaluator(const RunConfig& config, const PromptRenderer& renderer,
                                          const std::vector<TokenId>& stop_ids, Recorder& recorder,
                                          Console& console, Communicator& ranks) {
  if (config.eval.benches.empty() || config.eval.every == 0) return nullptr;
  auto evaluator = std::make_unique<Evaluator>(config, renderer, stop_ids, console, ranks);
  for (const std::string& note :
       overlap_notes(evaluator->benchmarks(), config.data.train, config.data.map))
    recorder.warn(note);
  return evaluator;
}

// Evaluates into run/eval/step-NNNNNN. A failure is a warning: the run continues, and `eval` can
// evaluate the checkpoint later.
std::optional<EvaluationResult> evaluate_step(Evaluator& evaluator, const RunConfig& config,
                                              const CausalLm& model, std::int64_t step,
                                              Recorder& recorder,
                                              const std::function<bool()>& stop) {
  Stopwatch clock;
  try {
    const std::optional<EvalSummary> summary =
        evaluator.run(model,
                      {.model = config.model.path,
                       .step = step,
                       .folder = recorder.directory() / evaluation_folder(step),
                       .replace_other = true},
                      stop);
    if (!summary) return std::nullopt;
    recorder.info(
        fmt::format("step {}, evaluated:\n{}", step, summary_table(*summary, config.eval.k)));
    return EvaluationResult{.metrics = evaluation_metrics(*summary, config.eval.k),
                            .seconds = clock.lap()};
  } catch (const RankLost&) {
    throw;
  } catch (const RunError& error) {
    recorder.warn(
        fmt::format("step {} was not evaluated: {}. The run continues", step, error.message()));
    return std::nullopt;
  }
}

// Checks what the reward needs of each problem before the first step.
void check_gradable(const PromptSet& problems, const RewardConfig& reward) {
  const bool by_tests = uses_grader(reward, "code"), by_answer = uses_grader(reward, "math"),
             is_countdown = uses_grader(reward, "countdown");
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const Problem& problem = problems[i];
    const std::string where = fmt::format("data.train, problem '{}'", problem.id);
    if (by_tests && problem.tests.is_null()) {
      throw InputError("it has no tests to grade code with",
                       {.where = where,
                        .remedy = "name their column, data.map = {tests = \"THEIR_COLUMN\"}, or "
                                  "make them with `antisd data convert`"});
    }
    if (by_answer && problem.answer.empty()) {
      throw InputError("it has tests and no answer to grade with",
                       {.where = where, .remedy = "use reward.kind = \"code\""});
    }
    if (!is_countdown) continue;
    try {
      read_countdown_problem(prompt_text(problem));
    } catch (const InputError& error) {
      throw InputError(error.problem(), {.where = where, .remedy = error.context().remedy});
    }
  }
}

ContextCommandOptions context_command_options(const RunConfig& config) {
  return {.command = config.context.command,
          .timeout_s = config.context.timeout_s,
          .workers = static_cast<int>(config.reward.workers)};
}

// Finds table entries that nothing would read, before the run directory is created.
void check_tables(const RunConfig& config) {
  check_sample_counts(config.eval);
  teacher_templates(task_of(config.reward, config.data), config.context.templates);
}

int train_in(Recorder& recorder, const RunConfig& config, const RunOptions& options,
             Console& console, const RunRanks& run, const std::function<bool()>& stop,
             std::int64_t& last_step) {
  Communicator& ranks = run.ranks;
  StepThreads threads(options.threads);
  const Method method = resolve_method(config.method, config.loss);
  check_tables(config);
  const at::Device device = choose_device(options.device, run.place.local_rank);
  const Source source = find_source(config, options, recorder, ranks);
  const auto warn = [&](const std::string& text) { recorder.warn(text); };
  // What each rank reads by itself. What one cannot read is told by all.
  std::optional<PromptRenderer> own_renderer;
  PromptSet problems;
  std::unique_ptr<Grader> grader;
  std::optional<CausalLm> model;
  std::optional<TeacherModel> other;
  agree(ranks, [&] {
    own_renderer.emplace(make_renderer(source.model, config.data, warn));
    other = find_teacher(config, source.model, own_renderer->tokenizer(),
                         read_model_shape(source.model / "config.json"));
    PromptSetReport report;
    problems = load_problems(config, *own_renderer, report);
    recorder.info("data: " + report.text());
    // Before the weights are loaded: the process that starts reward programs is a fork of this one.
    if (gets_whole_rows(config.reward) || !config.context.command.empty()) start_supervision();
    grader = make_grader(config.reward);
    with_tensor_errors([&] { model.emplace(make_model(source, config, device)); });
  });
  const PromptRenderer& renderer = *own_renderer;
  const auto seed = static_cast<std::uint64_t>(config.train.seed);
  const ShardedRun fitted{config, model->shape(), device, model->dtype(),
                          other ? &other->shape : nullptr};
  const auto tell = [&](const std::string& text) { recorder.info(text); };
  const ShardOptions shard = choose_shards(fitted, run.place, ranks, tell);
  const std::size_t kept_layers = choose_kept_layers(fitted, ranks, shard, tell);

  TrainState state(std::move(*model),
                   PromptStream(problems.size(), problems.fingerprint(),
                                {.seed = seed, .shuffle = config.data.shuffle}),
                   method.gate, adamw_options(config.optim), ranks, shard);
  if (state.model.shape().lora) state.base = identify_base(source.model);
  if (method.slow_teacher()) state.teacher.emplace(state.model);
  if (other) agree(ranks, [&] { state.other_teacher = other->identity(); });
  restore(state, source);
  last_step = state.step;
  if (state.step > 0 && source.resumed && state.gate.state().steps == 0)
    warn("the gate's signal has changed: its warm-up starts again");
  warn_of_limits(config, method, state.model.shape(), warn);
  // Into the log: the paper's own settings are like that, and a warning that always comes is not
  // read. The dry run says it too.
  if (const std::string text = unbounded_term_text(method, config.rollout.max_sequence_tokens);
      !text.empty())
    recorder.note(text);
  std::optional<CausalLm> reference;
  std::optional<OtherTeacher> other_teacher;
  std::optional<ContextCommand> context_command;
  agree(ranks, [&] {
    if (!config.context.command.empty() && method.needs_teacher()) {
      context_command.emplace(context_command_options(config));
      if (state.step < config.train.steps)
        context_command->probe(context_request(problems[0], Response()));
    }
    if (other)
      with_tensor_errors([&] {
        other_teacher.emplace(other->load(device, state.model.dtype()),
                              OtherTeacher::rest_for(device));
      });
    if (keeps_reference(config) && state.model.shape().lora)
      reference.emplace(state.model, std::nullopt, state.model.dtype());
    else if (keeps_reference(config))
      reference = load_model(state.reference, device, state.model.dtype());
    if (state.step < config.train.steps) grader->probe(grade_request(problems[0], {}));
  });
  for (const std::string& text : grader->take_warnings())
    warn(text);
  recorder.open(config, run_info(device, state.model.dtype(), std::string(method.name)),
                state.step);
  const std::vector<TokenId> stop_ids = find_stop_ids(source.model, renderer.tokenizer(), warn);
  const std::unique_ptr<Evaluator> evaluator =
      make_evaluator(config, renderer, stop_ids, recorder, console, ranks);
  const bool unevaluated = any_of(
      ranks, recorder.writes() && evaluator && evaluation_due(config, state.step) &&
                 !fs::exists(recorder.directory() / evaluation_folder(state.step) / kSummaryFile));
  if (state.step >= config.train.steps && !unevaluated) {
    recorder.info(fmt::format("step {} of {}: nothing is left to do; raise train.steps to continue",
                              state.step, config.train.steps));
    recorder.finish("finished", state.step);
    return 0;
  }
  const DiskPlan disk = plan_disk(state.model.shape(), config, state.model.dtype(),
                                  method.slow_teacher(), state.step);
  if (!disk.suffices()) warn(disk.warning());
  if (ranks.size() > 1) recorder.info(run.place.text());
  if (const auto& lora = state.model.shape().lora) {
    recorder.info(
        fmt::format("adapters: {}; {:.2f} M of {:.2f} M parameters are trained", lora->text(),
                    static_cast<double>(state.model.shape().trainable_parameter_count()) / 1e6,
                    static_cast<double>(state.model.shape().parameter_count()) / 1e6));
  }
  if (other) recorder.info("teacher: " + other->text());
  recorder.info(fmt::format("{} on {}: steps {} to {}, {} problems x {} responses", method.name,
                            device.str(), state.step + 1, config.train.steps,
                            config.rollout.prompts_per_step, config.rollout.group_size));
  std::function<std::optional<EvaluationResult>(std::int64_t)> evaluate;
  if (evaluator) {
    evaluate = [&](std::int64_t step) {
      return evaluate_step(*evaluator, config, state.model, step, recorder, stop);
    };
  }
  Trainer trainer({.config = config,
                   .state = state,
                   .problems = problems,
                   .renderer = renderer,
                   .grader = *grader,
                   .ranks = ranks,
                   .recorder = recorder,
                   .console = console,
                   .reference = reference ? &*reference : nullptr,
                   .other_teacher = other_teacher ? &*other_teacher : nullptr,
                   .context_command = context_command ? &*context_command : nullptr,
                   .stop_ids = stop_ids,
                   .origin = source.model,
                   .kept_layers = kept_layers,
                   .evaluate = evaluate});
  const bool whole = trainer.run([&] {
    last_step = state.step;
    threads.between_steps();
    return stop();
  });
  last_step = state.step;
  recorder.finish(whole ? "finished" : "stopped by a signal", state.step);
  return whole ? 0 : kStoppedStatus;
}

}  // namespace

PromptSet load_problems(const RunConfig& config, const PromptRenderer& renderer,
                        PromptSetReport& report, std::vector<std::int64_t>* lengths) {
  if (config.data.train.empty()) {
    throw InputError("no training data is named",
                     {.where = "data.train", .remedy = "give JSONL or Parquet files"});
  }
  const bool needs_answers = uses_grader(config.reward, "math");
  PromptSet problems = PromptSet::load(
      {.files = config.data.train,
       .map = config.data.map,
       .require_answer = needs_answers,
       .keep_rows = gets_whole_rows(config.reward) || !config.context.column.empty() ||
                    !config.context.command.empty(),
       .drop_duplicates = false,
       .drop_empty_answers = needs_answers,
       .max_prompt_characters = 0,
       .max_prompt_tokens = config.data.max_prompt_tokens,
       .count_tokens =
           [&](const Problem& p) {
             const std::int64_t tokens = std::ssize(renderer.encode(p));
             if (lengths != nullptr) lengths->push_back(tokens);
             return tokens;
           }},
      &report);
  check_gradable(problems, config.reward);
  for (std::size_t i = 0; i < problems.size() && !config.context.column.empty(); ++i)
    column_text(problems[i], config.context.column);
  return problems;
}

namespace {

// Warns of a warm-up as long as the run: the requested learning rate, or the method, would never be
// used.
void warn_of_warm_ups(const RunConfig& config, const Method& method, const Warn& warn) {
  warn_of_warm_up(config, warn);
  const std::int64_t gate = config.method.gate.warmup_steps;
  if (method.gate.signal != GateSignal::kNone && gate >= config.train.steps)
    warn(
        fmt::format("method.gate.warmup_steps = {} is not less than train.steps = {}: the method's "
                    "term is never used, and the run is plain GRPO",
                    gate, config.train.steps));
}

}  // namespace

void warn_of_limits(const RunConfig& config, const Method& method, const ModelShape& shape,
                    const Warn& warn) {
  const std::int64_t longest = config.rollout.max_sequence_tokens;
  if (longest > shape.max_positions) {
    warn(
        fmt::format("rollout.max_sequence_tokens = {} is more than the model's {} "
                    "positions: responses end there",
                    longest, shape.max_positions));
  }
  warn_of_warm_ups(config, method, warn);
  const CheckpointConfig& saved = config.checkpoint;
  if (saved.keep_best.starts_with("val-") &&
      (config.eval.benches.empty() || config.eval.every == 0)) {
    warn(fmt::format("checkpoint.keep_best: nothing is evaluated, so there is no '{}'",
                     saved.keep_best));
  }
}

int run_training(const RunConfig& config, const RunOptions& options, Console& console,
                 const RunRanks& run, const std::function<bool()>& stop) {
  return in_run_directory(
      config, options.resume, console, run.ranks, [&](Recorder& recorder, std::int64_t& last_step) {
        return train_in(recorder, config, options, console, run, stop, last_step);
      });
}

}  // namespace antisd::inline cli
