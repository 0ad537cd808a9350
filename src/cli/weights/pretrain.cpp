// `pretrain`: training on documents.

#include <memory>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/processes.h"
#include "cli/weights/adapted_model.h"
#include "cli/weights/device_choice.h"
#include "cli/weights/model_parts.h"
#include "cli/weights/rank_session.h"
#include "cli/weights/run_options.h"
#include "cli/weights/shard_choice.h"
#include "cli/weights/step_threads.h"
#include "core/error.h"
#include "data/countdown.h"
#include "dist/agreement.h"
#include "model/adapter_files.h"
#include "model/weights.h"
#include "run/checkpoint/disk_plan.h"
#include "run/stop_signals.h"
#include "text/chat_files.h"
#include "trainer/pretrain/document_trainer.h"
#include "trainer/pretrain/new_model.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;

// The directory whose config and tokenizer files are copied into the run's checkpoints. For a new
// model it is created in the run directory.
fs::path find_origin(const RunConfig& config, Recorder& recorder) {
  const bool is_new = config.pretrain.new_model.hidden > 0;
  if (is_new && config.model.lora.rank > 0) {
    throw InputError(
        "adapters need a trained model below them",
        {.where = "model.lora.rank", .remedy = "leave it out, or leave out pretrain.new_model"});
  }
  refuse_adapter(config.model.path);
  if (!config.train.init_from.empty()) {
    throw InputError("pretrain starts from weights, not from another run's optimizer",
                     {.where = "train.init_from",
                      .remedy = "set model.path to the model/ of that run's checkpoint"});
  }
  if (!is_new && config.model.path.empty()) {
    throw InputError("there is neither a model nor the shape of a new one",
                     {.where = "model.path",
                      .remedy = "give a Hugging Face directory, or pretrain.new_model.hidden"});
  }
  if (!is_new) return config.model.path;
  if (config.model.path.empty() &&
      (config.pretrain.source.empty() || !is_countdown_source(config.pretrain.source.front()))) {
    throw InputError("a new model for text needs a tokenizer",
                     {.where = "model.path",
                      .remedy = "give a directory with one; built-in tasks have their own"});
  }
  const fs::path origin = recorder.directory() / "new_model";
  write_new_model(config.pretrain.new_model, config.model.path, origin);
  return origin;
}

DocumentText read_text(const fs::path& origin, const std::vector<TokenId>& stop_ids,
                       const ScalarMap& chat_options) {
  DocumentText text{.tokenizer = Tokenizer::load(origin), .chat_options = chat_options};
  text.end = text.tokenizer.special_token_id("eos_token");
  if (!text.end && !stop_ids.empty()) text.end = stop_ids.front();
  if (has_chat_template(origin)) text.chat = ChatTemplate::load(origin);
  return text;
}

CausalLm make_model(const RunConfig& config, const fs::path& origin, at::Device device,
                    bool resumed) {
  if (config.model.lora.rank > 0) return load_with_adapters(origin, config, device);
  const at::ScalarType dtype = compute_dtype(device, config.model.dtype);
  if (config.pretrain.new_model.hidden == 0 && !resumed) return load_model(origin, device, dtype);
  CausalLm model(read_model_shape(origin / "config.json"), device, dtype);
  if (!resumed) initialise_randomly(model, static_cast<std::uint64_t>(config.train.seed));
  return model;
}

void check_lengths(const RunConfig& config, const CausalLm& model, const Tokenizer& tokenizer) {
  const ModelShape& shape = model.shape();
  if (config.pretrain.sequence_tokens > shape.max_positions) {
    throw InputError(fmt::format("pretrain.sequence_tokens = {} is more than the model's {} "
                                 "positions",
                                 config.pretrain.sequence_tokens, shape.max_positions),
                     {.remedy = "lower the first"});
  }
  if (tokenizer.vocabulary_size() > shape.vocabulary) {
    throw InputError(fmt::format("the tokenizer has {} tokens, the model {} rows for them",
                                 tokenizer.vocabulary_size(), shape.vocabulary),
                     {.where = config.model.path, .remedy = "use the tokenizer of the model"});
  }
}

int pretrain_in(Recorder& recorder, const RunConfig& config, const RunOptions& options,
                Console& console, const Place& place, Communicator& ranks,
                std::int64_t& last_step) {
  StepThreads threads(options.threads);
  const at::Device device = choose_device(options.device, place.local_rank);
  const auto report = [&](const std::string& text) { recorder.info(text); };
  std::optional<FoundCheckpoint> resumed;
  if (options.resume) {
    resumed =
        found_by_first(ranks, [&] { return find_checkpoint_to_resume(recorder, config, options); });
  }
  const fs::path origin = gather_agreed(ranks, [&] {  // rank 0 writes the files of a new model
    return ranks.rank() == 0 ? find_origin(config, recorder).string() : std::string();
  })[0];
  const std::vector<TokenId> stop_ids = find_stop_ids(
      origin, Tokenizer::load(origin), [&](const std::string& w) { recorder.warn(w); });
  const DocumentText text = read_text(origin, stop_ids, config.data.chat_options);
  DocumentOptions wanted{.sources = config.pretrain.source,
                         .mix = config.pretrain.mix,
                         .per_step = config.pretrain.documents_per_step,
                         .max_tokens = config.pretrain.sequence_tokens,
                         .seed = static_cast<std::uint64_t>(config.train.seed),
                         .shuffle = config.data.shuffle};
  const std::unique_ptr<Documents> documents = make_documents(wanted, text, report);
  CausalLm model = make_model(config, origin, device, resumed.has_value());
  const ShardedRun fitted{config, model.shape(), device, model.dtype()};
  const ShardOptions shard = choose_shards(fitted, place, ranks, report);
  const std::size_t kept_layers = choose_kept_layers(fitted, ranks, shard, report);
  DocumentState state(std::move(model), adamw_options(config.optim), ranks, shard);
  check_lengths(config, state.model, text.tokenizer);
  state.documents = documents->fingerprint();
  if (state.model.shape().lora) state.base = identify_base(origin);
  if (resumed) resume(state, resumed->path);
  last_step = state.step;

  DocumentTrainerParts parts{
      .config = config,
      .state = state,
      .documents = *documents,
      .tokenizer = text.tokenizer,
      .recorder = recorder,
      .console = console,
      .held_out = held_out_documents(wanted, config.pretrain.held_out,
                                     config.pretrain.eval_documents, text, report),
      .stop_ids = stop_ids,
      .origin = origin,
      .kept_layers = kept_layers};
  std::unique_ptr<Grader> grader;
  if (config.pretrain.samples > 0) {
    wanted.mix.plain = 1;  // the prompts of a student
    parts.prompts = held_out_documents(wanted, config.pretrain.held_out, config.pretrain.samples,
                                       text, [](const std::string&) {});
    grader = make_grader({.kind = "countdown"});
    parts.grader = grader.get();
  }

  warn_of_warm_up(config, [&](const std::string& w) { recorder.warn(w); });
  recorder.open(config, run_info(device, state.model.dtype(), "pretrain"), state.step);
  if (state.step >= config.train.steps) {
    recorder.info(fmt::format("step {} of {}: nothing is left to do; raise train.steps to continue",
                              state.step, config.train.steps));
    recorder.finish("finished", state.step);
    return 0;
  }
  const DiskPlan disk = plan_disk(state.model.shape(), config, state.model.dtype(),
                                  /*slow_teacher=*/false, state.step);
  if (!disk.suffices()) recorder.warn(disk.warning());
  recorder.info(fmt::format(
      "pretrain on {}: {:.2f} M parameters, steps {} to {}, {} documents each", device.str(),
      static_cast<double>(state.model.shape().trainable_parameter_count()) / 1e6, state.step + 1,
      config.train.steps, config.pretrain.documents_per_step));
  DocumentTrainer trainer(std::move(parts));
  const bool whole = trainer.run([&] {
    last_step = state.step;
    threads.between_steps();
    return StopSignals::received();
  });
  last_step = state.step;
  recorder.finish(whole ? "finished" : "stopped by a signal", state.step);
  return whole ? 0 : kStoppedStatus;
}

}  // namespace

std::function<int()> add_pretrain(CLI::App& app) {
  const auto options = std::make_shared<RunOptions>();
  add_run_options(app, *options);
  return [options] {
    RunConfig config;
    read_config(*options, config);
    if (const std::optional<int> status = run_as_launcher(
            options->processes, {.gpus = visible_gpus, .silence_s = config.dist.silence_s}))
      return *status;
    const Place place = this_place();
    Console console(console_options(place, options->quiet));
    outlive_refused_writes();
    const StopSignals signals;
    return run_on_ranks(
        place, {config.dist, identity_of("pretrain", config)}, [&](Communicator& ranks) {
          return in_run_directory(config, options->resume, console, ranks,
                                  [&](Recorder& recorder, std::int64_t& last_step) {
                                    return pretrain_in(recorder, config, *options, console, place,
                                                       ranks, last_step);
                                  });
        });
  };
}

}  // namespace antisd::inline cli
