// `generate`: responses to prompts, either rows in batches through the rollout engine, or one
// prompt or a chat on a terminal.

#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/processes.h"
#include "cli/prompt_reader.h"
#include "cli/rows.h"
#include "cli/weights/chat.h"
#include "cli/weights/device_choice.h"
#include "cli/weights/model_options.h"
#include "cli/weights/rank_session.h"
#include "core/error.h"
#include "dist/agreement.h"
#include "inference/stop_ids.h"
#include "inference/together.h"
#include "io/jsonl.h"
#include "io/row_source.h"
#include "text/chat_files.h"

namespace antisd::inline cli {
namespace {

struct GenerateOptions {
  ModelOptions model;
  RowStreamOptions rows;
  SamplingSettings sampling;
  std::int64_t max_tokens = 1024;
  int samples = 1;
  bool list_samples = false;  // --n was given
  std::uint64_t seed = 0;
  std::vector<std::string> stop;
  bool ignore_eos = false, quiet = false;
  std::string prompt;
  bool has_prompt = false, chat = false;
  int max_sequences = 256;
  std::int64_t kv_mib = 0;
  std::string processes;
};

// A terminal line that overwrites itself.
class LiveBar {
 public:
  explicit LiveBar(bool on) : on_(on && isatty(STDERR_FILENO) == 1) {}
  ~LiveBar() { clear(); }

  void show(const RolloutProgress& now) {
    if (!on_ || now.seconds - last_ < 0.1) return;
    last_ = now.seconds;
    shown_ = true;
    fmt::print(stderr, "\r\033[K{} tokens, {:.0f} tokens/s, {} running, {} waiting, KV {:.0f} %",
               now.new_tokens, static_cast<double>(now.new_tokens) / now.seconds, now.running,
               now.waiting, 100 * now.kv_use);
    std::fflush(stderr);
  }
  void clear() {
    if (shown_) fmt::print(stderr, "\r\033[K");
    shown_ = false;
    last_ = 0;
  }

 private:
  bool on_, shown_ = false;
  double last_ = 0;
};

class Generator {
 public:
  Generator(const GenerateOptions& options, Communicator& ranks, int local_rank)
      : options_(options),
        ranks_(ranks),
        interrupted_(catch_interrupts()),
        prompts_(files_of(options.model).string()),
        stop_strings_(options.stop),
        model_(open_model(options.model, local_rank)),
        engine_({.max_sequences = options.max_sequences, .kv_bytes = options.kv_mib << 20}),
        bar_(!options.quiet && ranks.rank() == 0) {
    rollout_.sampling = options.sampling;
    rollout_.max_new_tokens = options.max_tokens;
    rollout_.seed = options.seed;
    rollout_.interrupted = &interrupted_;
    check_sampling(options.sampling);
    if (!options.ignore_eos) rollout_.stop_ids = stop_ids();
    if (!stop_strings_.empty()) {
      const Tokenizer& tokenizer = prompts_.tokenizer();
      rollout_.stops = [&](std::span<const std::int32_t> ids) {
        return stop_strings_.complete(tokenizer, ids);
      };
    }
  }

  // All ranks call it; rank 0 has the rows and returns the status.
  int run_rows();
  int run_prompt();
  int run_chat() {
    if (!has_chat_template(files_of(options_.model))) {
      throw InputError(
          "the model has no chat template",
          {.where = options_.model.model, .remedy = "--prompt continues plain text without one"});
    }
    return cli::run_chat({prompts_, stop_strings_, model_, engine_, rollout_});
  }

 private:
  // A row in progress: its request, or what to write instead.
  struct Pending {
    Json row;
    RolloutRequest request;
    Json answer;  // an error, or the result once it is there
  };

  std::vector<std::int32_t> stop_ids() {
    std::vector<std::int32_t> ids = read_stop_ids(files_of(options_.model));
    if (prompts_.has_tokenizer()) {
      if (const auto id = prompts_.tokenizer().special_token_id("eos_token")) ids.push_back(*id);
    }
    return ids;
  }

  Pending read_row(Json row, std::uint32_t index) {
    Pending pending{.row = std::move(row)};
    pending.request = {prompts_.read(pending.row), options_.samples, index};
    check_rollout_request(model_, pending.request, rollout_);
    return pending;
  }

  Json to_json(const Response& sample) {
    Json out = Json::object();
    if (prompts_.has_tokenizer()) {
      std::string text = readable_text(prompts_.tokenizer(), sample.ids);
      if (const auto at = stop_strings_.find(text)) text.resize(*at);
      out["text"] = text;
    }
    out["ids"] = sample.ids;
    out["logp"] = sample.raw_logp;
    out["finish_reason"] = sample.finish == FinishReason::kStop ? "stop" : "length";
    return out;
  }

  Json to_json(const SampleGroup& group) {
    if (!options_.list_samples) return to_json(group.samples[0]);
    Json samples = Json::array();
    for (const Response& sample : group.samples)
      samples.push_back(to_json(sample));
    return {{"samples", std::move(samples)}};
  }

  bool read_batch(RowSource& reader, bool from_stdin, std::vector<Pending>& batch);
  int answer_rows(const std::function<void()>& call);
  void answer(std::vector<Pending>& batch, JsonlWriter& writer, const std::function<void()>& call);
  void generate(std::span<const RolloutRequest> requests, const std::function<void()>& call,
                const std::function<void(SampleGroup&)>& on_group);

  const GenerateOptions& options_;
  Communicator& ranks_;
  const std::atomic<bool>& interrupted_;
  PromptReader prompts_;
  StopStrings stop_strings_;
  CausalLm model_;
  RolloutEngine engine_;
  RolloutOptions rollout_;
  LiveBar bar_;
  std::uint32_t next_row_ = 0;  // keys the random numbers: independent of the batches
  std::exception_ptr error_;    // of the row after the batch
};

// Whether standard input has data or has ended, or does so within the time.
bool input_is_there(const RowSource& reader, int milliseconds) {
  if (reader.has_text() || std::cin.rdbuf()->in_avail() > 0) return true;
  pollfd input{STDIN_FILENO, POLLIN, 0};
  return poll(&input, 1, milliseconds) > 0;
}

// False if nothing follows this batch.
bool Generator::read_batch(RowSource& reader, bool from_stdin, std::vector<Pending>& batch) {
  constexpr std::size_t kMostSequences = 4096;
  const auto fail = [&](const Json& row, const InputError& error) {
    if (!options_.rows.keep_going || reader.is_broken()) {
      const std::string where = reader.where();
      error_ = error.message().starts_with(where)
                   ? std::make_exception_ptr(error)
                   : std::make_exception_ptr(InputError(error.message(), {.where = where}));
      return false;
    }
    batch.push_back({.row = row, .answer = {{"error", error.message()}}});
    return true;
  };
  while (batch.size() * static_cast<std::size_t>(options_.samples) < kMostSequences) {
    // A user who types rows waits for answers before the next row.
    if (from_stdin && !batch.empty() && !input_is_there(reader, 20)) return true;
    while (from_stdin && !interrupted_ && !input_is_there(reader, 200)) {
    }
    if (interrupted_) return true;
    Json row;
    try {
      if (!reader.next(row)) return false;
      batch.push_back(read_row(row, next_row_++));
    } catch (const InputError& error) {
      if (!fail(row, error)) return false;
    }
  }
  return true;
}

// Writes rows in order as they finish; after a signal, those that are finished.
void Generator::answer(std::vector<Pending>& batch, JsonlWriter& writer,
                       const std::function<void()>& call) {
  std::vector<RolloutRequest> requests;
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (!batch[i].answer.is_null()) continue;
    requests.push_back(batch[i].request);
    rows.push_back(i);
  }
  std::size_t written = 0;
  const auto write = [&](Pending& pending) {
    bar_.clear();
    Json out = pending.row.contains("id") ? Json{{"id", pending.row["id"]}} : Json::object();
    out.update(pending.answer);
    writer.write(out);
    pending.answer = true;  // marks it as written
  };
  const auto write_ready = [&] {
    for (; written < batch.size() && !batch[written].answer.is_null(); ++written)
      write(batch[written]);
    writer.flush();
  };
  write_ready();
  if (requests.empty()) return;
  rollout_.on_step = [&](const RolloutProgress& now) { bar_.show(now); };
  generate(requests, call, [&](SampleGroup& group) {
    batch[rows[group.request]].answer = to_json(group);
    write_ready();
  });
  bar_.clear();
  for (; written < batch.size(); ++written)
    if (!batch[written].answer.is_null()) write(batch[written]);
  writer.flush();
}

void Generator::generate(std::span<const RolloutRequest> requests,
                         const std::function<void()>& call,
                         const std::function<void(SampleGroup&)>& on_group) {
  if (ranks_.size() == 1) {
    engine_.generate(model_, requests, rollout_, on_group);
    return;
  }
  call();
  std::vector<SampleGroup> groups =
      generate_together(ranks_, engine_, model_, given_by_first(ranks_, requests), rollout_);
  for (SampleGroup& group : groups)
    on_group(group);
}

int Generator::run_rows() {
  int status = 0;
  lead(
      ranks_, [&](const std::function<void()>& call) { status = answer_rows(call); },
      [&] {
        const std::vector<RolloutRequest> given =
            given_by_first(ranks_, std::span<const RolloutRequest>());
        generate_together(ranks_, engine_, model_, given, rollout_);
      });
  return status;
}

int Generator::answer_rows(const std::function<void()>& call) {
  const bool from_stdin = options_.rows.file == "-";
  std::ios::sync_with_stdio(false);  // lets std::cin report what it has buffered
  const auto reader = from_stdin ? std::make_unique<RowSource>(std::cin, "standard input")
                                 : std::make_unique<RowSource>(options_.rows.file);
  JsonlWriter writer(std::cout, "standard output");
  bool more = true, any = false;
  while (more && !interrupted_) {
    std::vector<Pending> batch;
    more = read_batch(*reader, from_stdin, batch);
    any |= !batch.empty() || error_ != nullptr;
    answer(batch, writer, call);
  }
  if (interrupted_) return kInterruptedStatus;
  if (error_) std::rethrow_exception(error_);
  if (!any) {
    throw InputError("there are no prompts",
                     {.where = from_stdin ? "standard input" : options_.rows.file,
                      .remedy = "give rows with 'prompt', 'messages' or 'prompt_ids'"});
  }
  return 0;
}

int Generator::run_prompt() {
  if (!options_.quiet && isatty(STDERR_FILENO) == 1) {
    fmt::print(stderr,
               "--prompt is continued as raw text, without the chat template; for a "
               "conversation: --chat\n");
  }
  const Tokenizer& tokenizer = prompts_.tokenizer();
  const Pending pending = read_row({{"prompt", options_.prompt}}, 0);
  const bool live = options_.samples == 1 && stop_strings_.empty();
  TextStream stream(tokenizer);
  if (live) {
    rollout_.on_token = [&](std::size_t, int, std::int32_t id) {
      std::cout << stream.add(id) << std::flush;
    };
  }
  const SampleBatch batch = engine_.generate(model_, {&pending.request, 1}, rollout_);
  if (live) std::cout << stream.finish() << "\n";
  if (!live && !batch.groups.empty()) {
    for (const Response& sample : batch.groups[0].samples) {
      if (options_.samples > 1)
        std::cout << "--- sample " << &sample - batch.groups[0].samples.data() << "\n";
      std::cout << to_json(sample)["text"].get_ref<const std::string&>() << "\n";
    }
  }
  if (!options_.quiet && isatty(STDERR_FILENO) == 1) {
    fmt::print(stderr, "{} tokens, {:.0f} tokens/s\n", batch.stats.new_tokens,
               batch.stats.tokens_per_second());
  }
  return batch.interrupted ? kInterruptedStatus : 0;
}

}  // namespace

std::function<int()> add_generate(CLI::App& app) {
  const auto options = std::make_shared<GenerateOptions>();
  add_model_argument(app, options->model);
  add_row_stream_options(app, options->rows);
  CLI::Option* prompt = app.add_option("--prompt", options->prompt,
                                       "one prompt instead of rows, continued as raw text without "
                                       "the chat template; the text is streamed");
  CLI::Option* chat = app.add_flag("--chat", options->chat,
                                   "a conversation on the terminal, through the chat template");
  chat->excludes(prompt);
  app.add_option("--max-tokens", options->max_tokens,
                 "maximum number of new tokens, limited by the model's positions")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  app.add_option("--temperature", options->sampling.temperature, "0 is greedy")
      ->capture_default_str();
  app.add_option("--top-p", options->sampling.top_p,
                 "sample from the smallest set of tokens with at least this probability; 1: all")
      ->capture_default_str();
  app.add_option("--top-k", options->sampling.top_k,
                 "sample from this many most likely tokens; 0: all")
      ->capture_default_str();
  app.add_option("--min-p", options->sampling.min_p,
                 "only tokens at least this likely relative to the most likely one; 0: all")
      ->capture_default_str();
  CLI::Option* samples = app.add_option("--n", options->samples, "samples per prompt")
                             ->capture_default_str()
                             ->check(CLI::Range(1, 1 << 20))
                             ->excludes(chat);
  app.add_option("--seed", options->seed, "seed of the sampling")->capture_default_str();
  app.add_option("--stop", options->stop,
                 "a string that ends a response and is removed from its text; may be repeated")
      ->take_all()
      ->allow_extra_args(false);
  app.add_flag("--ignore-eos", options->ignore_eos, "continue after end-of-sequence tokens");
  app.add_option("--max-sequences", options->max_sequences, "sequences decoded at a time")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 16));
  app.add_option("--kv-memory", options->kv_mib,
                 "MiB for keys and values; 0: at most half of the free memory")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 30));
  add_device_options(app, options->model);
  app.add_flag("--quiet", options->quiet, "nothing but errors on standard error");
  add_processes_option(app, options->processes);
  app.footer(
      "Row in: {\"prompt\"}, {\"messages\"} (through the chat template) or {\"prompt_ids\"}.\n"
      "Row out: {\"text\", \"ids\", \"logp\", \"finish_reason\": \"stop\"|\"length\"}; logp is the "
      "model's own,\n"
      "before temperature and filters; with --n the row holds \"samples\": [..]. text is there "
      "where the model has\n"
      "a tokenizer. End-of-sequence ids come from generation_config.json and the tokenizer.");
  return [options, prompt, samples] {
    options->has_prompt = prompt->count() > 0;
    options->list_samples = samples->count() > 0;
    if (options->chat) {
      if (options->rows.file != "-") {
        throw InputError("--chat takes no FILE", {.where = options->rows.file,
                                                  .remedy = "messages come from standard input"});
      }
      return Generator(*options, *alone(), 0).run_chat();
    }
    if (options->has_prompt) return Generator(*options, *alone(), 0).run_prompt();
    if (const std::optional<int> status = run_as_launcher(options->processes, {visible_gpus}))
      return *status;
    const Place place = this_place();
    return run_on_ranks(place, {.identity = "generate " + options->model.model},
                        [&](Communicator& ranks) {
                          return Generator(*options, ranks, place.local_rank).run_rows();
                        });
  };
}

}  // namespace antisd::inline cli
