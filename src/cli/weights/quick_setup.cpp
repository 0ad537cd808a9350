#include "cli/weights/quick_setup.h"

#include <algorithm>
#include <functional>
#include <sstream>

#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sum.h>
#include <fcntl.h>
#include <fmt/format.h>

#include "cli/weights/adapted_model.h"
#include "cli/weights/device_choice.h"
#include "cli/weights/dry_run.h"
#include "cli/weights/quick_file.h"
#include "core/error.h"
#include "core/stopwatch.h"
#include "core/thread_pool.h"
#include "core/toml_text.h"
#include "io/atomic_file.h"
#include "io/json.h"
#include "io/unique_fd.h"
#include "model/adapted_shape.h"
#include "model/causal_lm.h"
#include "ops/device.h"
#include "ops/host_memory.h"
#include "plan/quick_choice.h"
#include "plan/run_plan.h"
#include "reward/code/sandbox.h"
#include "run/checkpoint/disk_plan.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;

constexpr double kQuickGiB = 1 << 30;
constexpr const char* kQuickSource = "quickstart.json";  // model and data, as they were named

// Measured for half a second: large products, and memory that is in no cache. The fastest of
// several calls counts, since other programs may hold the cores for a while.
CpuRates measure_cpu() {
  constexpr std::int64_t kSide = 768, kElements = 16 << 20;
  constexpr double kSeconds = 0.2;
  CpuRates rates;
  const auto fastest = [&](double amount, const std::function<void()>& work) {
    Stopwatch clock;
    double fastest = 0;
    for (double spent = 0; spent < kSeconds;) {
      work();
      const double seconds = clock.lap();
      spent += seconds;
      fastest = std::max(fastest, amount / seconds);
    }
    return fastest;
  };
  const at::Tensor square = at::ones({kSide, kSide}), large = at::ones({kElements});
  rates.flops = fastest(2.0 * kSide * kSide * kSide, [&] { at::mm(square, square); });
  rates.read = fastest(4.0 * kElements, [&] { at::sum(large); });
  return rates;
}

struct Findings {
  at::Device device = at::kCPU;
  QuickMachine machine;
  std::string text;  // "cpu, 2 threads, 20.1 GiB free"
};

Findings examine_machine(const QuickRequest& request, Console& console) {
  Findings found;
  found.device = choose_device(request.run.device);
  found.machine.gpu = found.device.is_cuda();
  found.machine.memory = static_cast<double>(available_memory(found.device));
  if (found.machine.gpu)
    found.machine.host =
        std::max(0.0, static_cast<double>(available_memory(at::kCPU)) - kHostReserve);
  found.text = fmt::format("{}, {:.1f} GiB of its memory free, {} threads", found.device.str(),
                           found.machine.memory / kQuickGiB, available_threads());
  console.info("machine   " + found.text);
  return found;
}

// InputError if graded code needs it and the machine cannot isolate programs.
std::string sandbox_text(bool needed) {
  const SandboxStrength strength = probe_sandbox();
  if (needed) choose_confinement("auto", strength);
  return strength.isolates() ? "graded code is isolated"
                             : "too weak for graded code, which this run has not; see doctor";
}

// Qwen3 and others can think at length before they answer; their templates have a switch for it.
bool can_think(const fs::path& model) {
  for (const char* name : {"chat_template.jinja", "tokenizer_config.json", "chat_template.json"})
    if (fs::exists(model / name) &&
        read_file(model / name).find("enable_thinking") != std::string::npos)
      return true;
  return false;
}

std::string seconds_text(double seconds) {
  if (seconds < 1) return "less than a second";
  if (seconds < 90) return fmt::format("about {:.0f} s", seconds);
  if (seconds < 5400) return fmt::format("about {:.0f} minutes", seconds / 60);
  return fmt::format("about {:.1f} hours", seconds / 3600);
}

std::vector<QuickSetting> all_settings(const QuickRequest& request, const fs::path& model,
                                       const QuickSplit& split, const QuickChoice& choice) {
  std::vector<QuickSetting> settings = {
      {"model.path", toml_value(model.string()), "A Hugging Face directory."},
      {"data.train", toml_value(split.train),
       fs::path(split.train[0]).parent_path() == request.file("data")
           ? "The rows that are not held out."
           : "The problems to train on."},
      {"data.template", toml_value(split.kind.empty() ? "none" : split.kind),
       "How a problem becomes the question that the model is asked."},
      {"reward.kind", toml_value(split.kind.empty() ? "math" : split.kind),
       split.kind == "code" ? "The rows have tests." : "The rows have answers."},
      {"eval.benches", toml_value(std::vector<std::string>{split.bench}),
       fmt::format("Held out: {}.", split.text)},
      {"record.dir", toml_value((request.file("run")).string()),
       "Metrics, checkpoints and evaluations."}};
  if (can_think(model))
    settings.push_back({"data.chat_options", "{enable_thinking = false}",
                        "Answers without a long thought before them: short enough to start with."});
  settings.insert(settings.end(), choice.settings.begin(), choice.settings.end());
  const std::vector<QuickSetting> given = given_settings(request.assignments);
  for (const QuickSetting& setting : given) {
    std::erase_if(settings, [&](const QuickSetting& one) { return one.key == setting.key; });
    settings.push_back(setting);
  }
  return settings;
}

// Predicted for a GPU that has rates, estimated for a CPU.
std::string time_text(const RunConfig& config, const ModelShape& shape, at::Device device) {
  const auto steps = static_cast<double>(config.train.steps);
  if (device.is_cpu()) {
    const double seconds = cpu_step_seconds(shape, config, measure_cpu());
    return fmt::format(
        "{} a step if responses have half of that length, {} in all; estimated from "
        "this CPU's speed without other load, and a GPU is far faster",
        seconds_text(seconds), seconds_text(seconds * steps));
  }
  const Card* card = card_at_hand(device);
  if (card == nullptr) return "not known for this GPU";
  const RunPlan plan =
      plan_run({config, shape, {.card = *card}, set_forms(config)},
               Lengths::within(std::min(config.rollout.max_sequence_tokens, shape.max_positions),
                               kPromptTokens, static_cast<std::uint64_t>(config.train.seed)));
  return fmt::format(
      "{} a step, {} in all with the evaluations; predicted for responses of a "
      "quarter of that length",
      seconds_text(plan.step_seconds()), seconds_text(plan.hours() * 3600));
}

void tell_plan(const RunConfig& config, const ModelShape& model, const Findings& found,
               const QuickChoice& choice, Console& console) {
  const ModelShape shape = configured_shape(model, config.model);
  console.info(fmt::format(
      "training  {}: {:.1f} GiB needed{}", choice.way, choice.needed / kQuickGiB,
      choice.on_host > 0 ? fmt::format(", {:.1f} GiB of the host", choice.on_host / kQuickGiB)
                         : ""));
  console.info(fmt::format("steps     {} of {} problems x {} responses of up to {} tokens",
                           config.train.steps, config.rollout.prompts_per_step,
                           config.rollout.group_size, config.rollout.max_sequence_tokens));
  const Method method = resolve_method(config.method, config.loss);
  const DiskPlan disk = plan_disk(shape, config, compute_dtype(found.device, config.model.dtype),
                                  method.slow_teacher());
  console.info("disk      " + disk.text());
  if (!disk.suffices()) console.warn(disk.warning());
  console.info("time      " + time_text(config, shape, found.device));
}

}  // namespace

QuickSetup choose_setup(const QuickRequest& request, RunConfig& config, Console& console) {
  const fs::path model = find_quick_model(request.model);
  refuse_adapter(model);
  const ModelShape shape = read_model_shape(model / "config.json");
  const QuickData data = find_quick_data(request.data);
  RunConfig given;
  for (const std::string& assignment : request.assignments)
    given.options().assign(assignment);
  const Findings found = examine_machine(request, console);
  const QuickChoice choice = choose_quick(shape, found.machine, request.assignments, request.steps);
  QuickSetup setup{.toml = {},
                   .split = split_quick_data(data, {.folder = request.file("data"),
                                                    .held_out = choice.held_out,
                                                    .map = given.data.map})};
  const QuickSplit& split = setup.split;
  if (split.kind.empty() && !given.options().find("reward.kind")->was_set()) {
    throw InputError(
        "not every row has an answer, nor has every row tests",
        {.where = request.data,
         .remedy = "name their columns, data.map={answer = \"THEIRS\"}, or grade with a "
                   "program: reward.kind=command reward.command=..."});
  }
  console.info(fmt::format("model     {}: {:.1f} M parameters", model.string(),
                           static_cast<double>(shape.parameter_count()) / 1e6));
  console.info(fmt::format("data      {}; held out: {}", request.data, split.text));
  console.info("sandbox   " + sandbox_text(split.kind == "code"));
  if (!choice.fits) {
    throw InputError(fmt::format("the model does not fit this machine: {}", choice.reason),
                     {.where = request.model, .remedy = choice.remedy});
  }
  setup.toml = quick_toml(
      fmt::format(
          "Written by `antisd quickstart` for {} and {} on {}. `antisd train {}` repeats the "
          "run after its folder is removed; docs/options.md has all keys.",
          request.model, request.data, found.text, request.settings().string()),
      all_settings(request, model, split, choice));
  config.options().load_toml_text(setup.toml, request.settings().string());
  config.resolve();
  check_base(config.model);
  tell_plan(config, shape, found, choice, console);
  return setup;
}

void read_setup(const QuickRequest& request, RunConfig& config, Console& console) {
  const fs::path file = request.settings();
  const Json source =
      parse_json(read_file(request.file(kQuickSource)), request.file(kQuickSource).string());
  const auto check = [&](const char* key, const std::string& now, bool named) {
    const std::string before = source.value(key, now);
    if (!named || before == now) return;
    throw InputError(fmt::format("it was begun with --{} {}", key, before),
                     {.where = request.directory, .remedy = "choose another --dir, or remove it"});
  };
  check("model", request.model, request.named_model);
  check("data", request.data, request.named_data);
  config.options().load_toml(file);
  for (const std::string& assignment : request.assignments)
    config.options().assign(assignment);
  if (request.steps > 0) config.options().assign(fmt::format("train.steps={}", request.steps));
  config.resolve();
  check_base(config.model);
  console.info(fmt::format("going on with {}", file.string()));
}

void write_setup(const QuickRequest& request, const QuickSetup& setup, const RunConfig& config,
                 Console& console) {
  fs::create_directories(request.directory);
  setup.split.write();
  std::ostringstream plan;
  const UniqueFd nowhere(open("/dev/null", O_WRONLY | O_CLOEXEC));  // training warns again
  Console silent({.quiet = true, .descriptor = nowhere.get()});
  dry_run(config, request.run, silent, plan);
  write_file_atomically(request.file("plan.txt"), plan.str());
  write_file_atomically(request.file(kQuickSource),
                        Json({{"model", request.model}, {"data", request.data}}).dump(1) + "\n");
  write_file_atomically(request.settings(), setup.toml);  // last: all of it is there
  console.info(
      fmt::format("written   {} and plan.txt beside it, with the first prompts and the "
                  "memory of each part",
                  request.settings().string()));
}

}  // namespace antisd::inline cli
