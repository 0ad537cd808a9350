#ifdef ANTISD_TORCH

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "bench/benchmarks.h"
#include "bench/clock.h"
#include "bench/memory_cap.h"
#include "bench/options.h"
#include "bench/random_model.h"
#include "bench/recompute.h"
#include "bench/shapes.h"
#include "bench/workload.h"
#include "core/error.h"
#include "core/rng.h"
#include "io/atomic_file.h"
#include "io/jsonl.h"
#include "model/adapted_shape.h"
#include "trainer/trainer.h"

namespace antisd::bench {
namespace {

namespace fs = std::filesystem;

struct StepOptions {
  std::string shape = "tiny";
  std::string device = "cpu";
  std::string method = "both";
  std::string peer = "rollout", recompute = "auto";
  int prompts = 8, group = 8, prompt_tokens = 256, new_tokens = 256, steps = 3, warm_up = 1,
      threads = 0;
  std::int64_t micro_batch_tokens = 32'768, cap = 0, lora_rank = 0;
  std::string offload = "none", base = "model";
  double memory_gib = 0;
  bool long_tail = false, json = false;
};

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "antisd-bench-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw RunError("cannot make a temporary folder");
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// Unless it is given, half of the responses end before the length limit, the others at it; of a
// long tail, the limit is eight times the mean.
std::int64_t response_cap(const StepOptions& options) {
  if (options.long_tail && options.cap == 0) return 8 * std::int64_t{options.new_tokens};
  return options.cap > 0 ? options.cap : std::llround(2 * std::log(2.0) * options.new_tokens);
}

// The share of tokens that end a response, so that the mean length is new_tokens: with a share p
// and a limit c it is (1 - exp(-p c)) / p.
double stop_share(const StepOptions& options) {
  const auto limit = static_cast<double>(response_cap(options));
  double low = 1e-9, high = 1;
  for (int i = 0; i < 100; ++i) {
    const double share = std::sqrt(low * high);
    ((1 - std::exp(-share * limit)) / share > options.new_tokens ? low : high) = share;
  }
  return high;
}

std::vector<TokenId> choose_stop_ids(const StepOptions& options, std::int64_t vocabulary) {
  const double share = stop_share(options);
  const auto count =
      std::max<std::int64_t>(1, std::llround(share * static_cast<double>(vocabulary)));
  std::vector<TokenId> ids;
  for (std::int64_t i = 0; i < count; ++i)
    ids.push_back(static_cast<TokenId>(i * vocabulary / count));
  return ids;
}

// With --long-tail, responses end at the lengths of a list: their first two tokens choose an entry.
class LengthList {
 public:
  explicit LengthList(const StepOptions& options)
      : prompt_(options.prompt_tokens),
        lengths_(long_tail(kEntries, options.new_tokens, response_cap(options))) {}

  bool ends(std::span<const TokenId> ids) {
    if (ids.size() < 2) return false;
    const auto name = static_cast<std::uint32_t>(ids[0]) * 2'654'435'761u +
                      static_cast<std::uint32_t>(ids[1]) * 40'503u;
    if (std::ssize(ids) < lengths_[(name >> 7) % kEntries]) return false;
    ended_.push_back(std::ssize(ids));
    return true;
  }

  void forget() { ended_.clear(); }
  // Of forward and backward pass over the responses that ended; prompts are computed once a group.
  double attention_flops_of(const ModelShape& shape, int group) const {
    double flops = 0;
    for (const std::int64_t length : ended_)
      flops += 3 * attention_flops(shape, prompt_, prompt_ + length) +
               3 * attention_flops(shape, 0, prompt_) / group;
    return flops;
  }

 private:
  static constexpr std::uint32_t kEntries = 4096;
  std::int64_t prompt_;
  std::vector<std::int64_t> lengths_, ended_;
};

// One word per id, so a response that is shown to the teacher has the same number of tokens again.
void write_tokenizer(const fs::path& folder, std::int64_t vocabulary) {
  std::string words;
  for (std::int64_t i = 0; i < vocabulary; ++i)
    words += fmt::format(R"({}"w{}":{})", i == 0 ? "" : ",", i, i);
  write_file_atomically(folder / "tokenizer.json",
                        fmt::format(R"({{"version":"1.0","added_tokens":[],"normalizer":null,
      "pre_tokenizer":{{"type":"WhitespaceSplit"}},"post_processor":null,"decoder":null,
      "model":{{"type":"WordLevel","vocab":{{{}}},"unk_token":"w0"}}}})",
                                    words));
}

std::string random_words(int count, std::int64_t vocabulary, std::uint32_t seed) {
  std::string text;
  std::uint32_t state = seed * 2'654'435'761u + 1;
  for (int i = 0; i < count; ++i) {
    state = state * 1'664'525u + 1'013'904'223u;
    text += fmt::format("{}w{}", i == 0 ? "" : " ", (state >> 4) % vocabulary);
  }
  return text;
}

void write_problems(const fs::path& file, const StepOptions& options, std::int64_t vocabulary) {
  std::string rows;
  for (int i = 0; i < options.prompts * (options.steps + options.warm_up); ++i) {
    const auto seed = static_cast<std::uint32_t>(i);
    rows += Json({{"id", fmt::format("p{}", i)},
                  {"problem", random_words(options.prompt_tokens, vocabulary, 2 * seed)},
                  {"solution", random_words(options.new_tokens, vocabulary, 2 * seed + 1)},
                  {"answer", "w1"}})
                .dump() +
            "\n";
  }
  write_file_atomically(file, rows);
}

// Half of the finished ones are right.
class TrivialGrader : public Grader {
 public:
  Verdict grade(const GradeRequest& request) override {
    return {request.response.size() % 2 == 0 ? 1.0 : 0.0, ""};
  }
};

void configure(RunConfig& config, const StepOptions& options, const std::string& method,
               const fs::path& folder) {
  for (const std::string& line :
       {"method.name=" + method,
        "data.train=" + (folder / "problems.jsonl").string(),
        std::string("data.template=none"),
        fmt::format("data.max_prompt_tokens={}", options.prompt_tokens),
        std::string("data.shuffle=false"),
        std::string("reward.kind=math"),
        fmt::format("rollout.prompts_per_step={}", options.prompts),
        fmt::format("rollout.group_size={}", options.group),
        fmt::format("rollout.max_sequence_tokens={}",
                    options.prompt_tokens + response_cap(options)),
        "context.peer=" + options.peer,
        std::string("method.gate.warmup_steps=1"),
        std::string("method.gate.min_warm=0"),
        fmt::format("train.steps={}", options.steps + options.warm_up + 1),
        fmt::format("train.micro_batch_tokens={}", options.micro_batch_tokens),
        fmt::format("model.lora.rank={}", options.lora_rank),
        "model.base_dtype=" + options.base,
        "optim.offload=" + options.offload,
        std::string("checkpoint.every=0"),
        std::string("record.tensorboard=true"),
        "record.dir=" + (folder / method).string()}) {
    config.options().assign(line);
  }
  config.resolve();
}

// Sums over the measured steps.
struct Phases {
  double generate = 0, reward = 0, score = 0, advantage = 0, update = 0, record = 0, whole = 0;
  double response_tokens = 0, peers = 0;
  double parameter_flops = 0, attention_flops = 0;  // of the updates: 6ND, and beside it
  std::optional<double> peak_flops;                 // of the device, if known
  std::size_t recomputed = 0;                       // layers
  struct Peak {
    double planned = 0, measured = 0;  // GiB
  };
  Peak sampling, scoring, updating;  // measured only on a GPU
  double overhead() const { return 1 - (generate + score + update) / whole; }
};

Phases train(const StepOptions& options, const std::string& name, const fs::path& folder) {
  RunConfig config;
  configure(config, options, name, folder);
  const at::Device device(options.device);
  const Method method = resolve_method(config.method, config.loss);
  const PromptRenderer renderer(Tokenizer::load(folder), std::nullopt, config.data);
  const PromptSet problems =
      PromptSet::load({.files = config.data.train, .map = {}, .count_tokens = {}});
  const auto ranks = alone();
  at::manual_seed(1);  // every method starts from the same weights
  CausalLm model = random_model(configured_shape(named_shape(options.shape), config.model), device);
  const MemoryPlan plan = planned_memory(options.recompute, config, model);
  const double memory = memory_for(model);
  TrainState state(std::move(model),
                   PromptStream(problems.size(), problems.fingerprint(), {.shuffle = false}),
                   method.gate, adamw_options(config.optim), *ranks,
                   {.offload = *offload_of_name(options.offload)});
  Console console({.quiet = true});
  Recorder recorder(config.record, console);
  recorder.open(config, {}, 0);
  TrivialGrader grader;
  LengthList list(options);
  std::vector<TokenId> stop_ids;
  std::function<bool(std::span<const TokenId>)> stops;
  if (options.long_tail) {
    stops = [&](std::span<const TokenId> ids) { return list.ends(ids); };
  } else {
    stop_ids = choose_stop_ids(options, state.model.shape().vocabulary);
  }
  Trainer trainer({.config = config,
                   .state = state,
                   .problems = problems,
                   .renderer = renderer,
                   .grader = grader,
                   .ranks = *ranks,
                   .recorder = recorder,
                   .console = console,
                   .reference = nullptr,
                   .stop_ids = stop_ids,
                   .stops = stops,
                   .origin = folder,
                   .kept_layers = plan.kept_layers});
  Clock clock(device);
  std::vector<double> walls;  // of each step with its record
  // The run is left before its last step, because a run that ends saves a checkpoint.
  struct Measured {};
  try {
    trainer.run([&] {
      walls.push_back(clock.lap());
      if (state.step == options.warm_up) list.forget();
      if (state.step >= options.steps + options.warm_up) throw Measured();
      return false;
    });
  } catch (const Measured&) {
  }

  Phases phases;
  phases.recomputed = plan.layers - plan.kept_layers;
  const double always = plan.total(MemoryTime::kAlways);
  phases.sampling.planned = (plan.beside_cache() + plan.cache_bytes(memory)) / (1 << 30);
  phases.scoring.planned = (always + plan.total(MemoryTime::kScoring)) / (1 << 30);
  phases.updating.planned = (always + plan.total(MemoryTime::kUpdate)) / (1 << 30);
  JsonlReader reader(recorder.directory() / "metrics.jsonl");
  std::size_t step = 0;
  for (Json row; reader.next(row);) {
    ++step;
    if (step <= static_cast<std::size_t>(options.warm_up)) continue;
    const auto value = [&](const char* key) { return row.at(key).get<double>(); };
    phases.generate += value("timing_s/gen");
    phases.reward += value("timing_s/reward");
    phases.score += value("timing_s/score");
    phases.advantage += value("timing_s/adv");
    phases.update += value("timing_s/update_actor");
    phases.record += walls[step] - value("timing_s/step");
    phases.whole += walls[step];
    const auto peak = [&](Phases::Peak& found, const char* phase) {
      found.measured = std::max(
          found.measured, row.value(std::string("perf/max_memory_allocated_gb/") + phase, 0.0));
    };
    peak(phases.sampling, "gen");
    peak(phases.scoring, "score");
    peak(phases.updating, "update_actor");
    phases.response_tokens += value("response_length/mean") / options.steps;
    if (row.contains("context/peer_fraction"))
      phases.peers += value("context/peer_fraction") / options.steps;
  }
  const double tokens =
      options.prompts * (options.prompt_tokens + options.group * phases.response_tokens);
  phases.parameter_flops = state.model.shape().training_flops() * tokens * options.steps;
  phases.attention_flops = list.attention_flops_of(state.model.shape(), options.group);
  phases.peak_flops = peak_flops(device);
  return phases;
}

// Tokens of responses by the time of the whole step.
double tokens_per_second(const Phases& phases, const StepOptions& options) {
  return options.prompts * options.group * phases.response_tokens * options.steps / phases.whole;
}

// Attention's are known with --long-tail.
Json flops_json(const Phases& phases, const StepOptions& options) {
  Json flops = {{"parameters", phases.parameter_flops / options.steps}};
  const auto share = [&](double count) { return count / phases.update / *phases.peak_flops; };
  if (phases.peak_flops) flops["peak_share"] = share(phases.parameter_flops);
  if (!options.long_tail) return flops;
  flops["attention"] = phases.attention_flops / options.steps;
  if (phases.peak_flops)
    flops["peak_share_with_attention"] = share(phases.parameter_flops + phases.attention_flops);
  return flops;
}

Json to_json(const Phases& phases, const StepOptions& options) {
  const int steps = options.steps;
  const auto gib = [](const Phases::Peak& peak) {
    return Json{{"planned", peak.planned}, {"measured", peak.measured}};
  };
  return {{"gen_s", phases.generate / steps},
          {"reward_s", phases.reward / steps},
          {"score_s", phases.score / steps},
          {"adv_s", phases.advantage / steps},
          {"update_s", phases.update / steps},
          {"record_s", phases.record / steps},
          {"step_s", phases.whole / steps},
          {"overhead", phases.overhead()},
          {"response_tokens", phases.response_tokens},
          {"tokens_per_second", tokens_per_second(phases, options)},
          {"peer_fraction", phases.peers},
          {"update_flops", flops_json(phases, options)},
          {"recomputed_layers", phases.recomputed},
          {"sampling_gib", gib(phases.sampling)},
          {"scoring_gib", gib(phases.scoring)},
          {"update_gib", gib(phases.updating)}};
}

void print(const std::string& name, const Phases& phases, const StepOptions& options) {
  const int steps = options.steps;
  fmt::print(
      "{}: {:.3f} s a step, responses of {:.0f} tokens on average, {:.0f} tokens/s, {} layers "
      "recomputed\n",
      name, phases.whole / steps, phases.response_tokens, tokens_per_second(phases, options),
      phases.recomputed);
  const auto line = [&](const char* part, double seconds) {
    fmt::print("  {:<8} {:9.3f} s  {:5.1f} %\n", part, seconds / steps,
               100 * seconds / phases.whole);
  };
  line("gen", phases.generate);
  line("reward", phases.reward);
  line("score", phases.score);
  line("adv", phases.advantage);
  line("update", phases.update);
  line("record", phases.record);
  fmt::print(
      "  update   {:9.3g} TFLOP by parameters (6ND){}{}\n", phases.parameter_flops / steps / 1e12,
      options.long_tail
          ? fmt::format(", {:.3g} of attention", phases.attention_flops / steps / 1e12)
          : "",
      phases.peak_flops ? fmt::format("; {:.1f} % of peak",
                                      100 * (phases.parameter_flops + phases.attention_flops) /
                                          phases.update / *phases.peak_flops)
                        : "");
  const auto memory = [](const char* part, const Phases::Peak& peak) {
    fmt::print("  {:<8} {:9.2f} GiB planned{}\n", part, peak.planned,
               peak.measured > 0 ? fmt::format(", {:.2f} measured", peak.measured) : "");
  };
  memory("gen", phases.sampling);
  memory("score", phases.scoring);
  memory("update", phases.updating);
  fmt::print("  outside sampling, scoring and update: {:.2f} % (limit 3)\n",
             100 * phases.overhead());
}

}  // namespace

int run_step(const Arguments& arguments) {
  StepOptions options;
  CLI::App app("time of a whole training step", "antisd-bench step");
  add_model_options(app, options.shape, options.device);
  add_choice(app, "--method", options.method, {"both", "grpo", "antisd"});
  add_choice(app, "--peer", options.peer, {"rollout", "group"}, "context.peer");
  add_number(app, "--prompts", options.prompts, 1, 1 << 16, "problems in a step");
  add_number(app, "--group", options.group, 2, 4096, "responses a problem");
  add_number(app, "--prompt-tokens", options.prompt_tokens, 1, 1 << 20, "of each problem");
  add_number(app, "--new-tokens", options.new_tokens, 2, 1 << 20, "mean tokens per response");
  add_number(app, "--cap", options.cap, 0, 1 << 20,
             "the most tokens of a response; 0: so that half of them end before it");
  add_number(app, "--steps", options.steps, 1, 1000, "measured steps, after the warm-up");
  add_number(app, "--warm-up", options.warm_up, 0, 100, "steps before them");
  add_recompute_option(app, options.recompute);
  add_threads_option(app, options.threads);
  add_number(app, "--micro-batch-tokens", options.micro_batch_tokens, 1, std::int64_t{1} << 40);
  add_offload_option(app, options.offload);
  add_memory_option(app, options.memory_gib);
  add_base_option(app, options.base);
  add_number(app, "--lora", options.lora_rank, 0, 1 << 16, "rank of adapters; 0: none");
  app.add_flag("--long-tail", options.long_tail,
               "responses end at the lengths of a long-tailed list with that mean and cap");
  app.add_flag("--json", options.json);
  if (const auto status = parse(app, arguments)) return *status;

  if (options.cap > 0 && options.cap <= options.new_tokens)
    throw InputError("the mean length has to be less", {.where = "--cap"});
  if (options.threads > 0) at::set_num_threads(options.threads);
  cap_memory(at::Device(options.device), options.memory_gib);
  const TemporaryFolder folder;
  const std::int64_t vocabulary = named_shape(options.shape).vocabulary;
  write_tokenizer(folder.path(), vocabulary);
  write_problems(folder.path() / "problems.jsonl", options, vocabulary);

  const std::vector<std::string> methods = options.method == "both"
                                               ? std::vector<std::string>{"grpo", "antisd"}
                                               : std::vector<std::string>{options.method};
  Json report = {{"shape", options.shape},         {"device", options.device},
                 {"offload", options.offload},     {"base_dtype", options.base},
                 {"lora_rank", options.lora_rank}, {"steps", options.steps}};
  std::vector<Phases> phases;
  for (const std::string& method : methods) {
    phases.push_back(train(options, method, folder.path()));
    report[method] = to_json(phases.back(), options);
    if (!options.json) print(method, phases.back(), options);
  }
  if (phases.size() == 2) {
    const double added = phases[1].score / phases[0].whole;
    const double ratio = phases[1].whole / phases[0].whole - 1;
    report["teacher_pass_over_grpo_step"] = added;
    report["antisd_over_grpo"] = ratio;
    if (!options.json) {
      fmt::print(
          "AntiSD's step takes {:.1f} % more than GRPO's; contexts and the teacher's pass are "
          "{:.1f} % of a GRPO step (limit 12)\n",
          100 * ratio, 100 * added);
    }
  }
  if (options.json) fmt::print("{}\n", report.dump());
  return 0;
}

}  // namespace antisd::bench

#endif
