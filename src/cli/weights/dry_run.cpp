#include "cli/weights/dry_run.h"

#include <algorithm>
#include <ostream>

#include <fmt/format.h>

#include "cli/processes.h"
#include "cli/weights/adapted_model.h"
#include "cli/weights/device_choice.h"
#include "cli/weights/teacher_model.h"
#include "context/context_builder.h"
#include "core/error.h"
#include "eval/benchmark.h"
#include "hub/cache.h"
#include "model/adapted_shape.h"
#include "model/causal_lm.h"
#include "ops/device.h"
#include "ops/host_memory.h"
#include "optim/schedule.h"
#include "plan/run_plan.h"
#include "reward/grader.h"
#include "run/checkpoint/checkpoint.h"
#include "run/checkpoint/disk_plan.h"
#include "run/recorder.h"
#include "run/run_files.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShownBytes = 1500;  // of a prompt

class Report {
 public:
  explicit Report(std::ostream& out) : out_(out) {}
  void line(std::string_view label, const std::string& text) {
    out_ << fmt::format("{:<12} {}\n", label, text);
  }
  void block(std::string_view title, const std::string& text) {
    out_ << fmt::format("\n--- {}\n{}\n", title, shortened(text));
  }
  void lines(const std::vector<std::string>& texts) {
    for (const std::string& text : texts)
      out_ << text << "\n";
  }
  void gap() { out_ << "\n"; }

 private:
  static std::string shortened(const std::string& text) {
    if (text.size() <= kShownBytes) return text;
    // Cut between characters: continuation bytes start with the bits 10.
    const auto is_inside = [&](std::size_t i) { return (text[i] & 0xC0) == 0x80; };
    std::size_t head = kShownBytes / 2, tail = text.size() - kShownBytes / 2;
    while (head > 0 && is_inside(head))
      --head;
    while (tail < text.size() && is_inside(tail))
      ++tail;
    return fmt::format("{}\n[... {} bytes ...]\n{}", text.substr(0, head), tail - head,
                       text.substr(tail));
  }
  std::ostream& out_;
};

fs::path model_directory(const RunConfig& config, Report& report, const Warn& warn) {
  fs::path model = model_folder(config.model.path);
  fs::path parent = config.train.init_from;
  if (!model.empty() && !parent.empty() && !fs::exists(parent)) {
    warn(fmt::format("train.init_from: {} is not here; training needs it", parent.string()));
  } else if (!parent.empty()) {
    if (fs::exists(parent / kCheckpointsFolder)) {
      const NewestCheckpoint newest = find_newest_whole(parent / kCheckpointsFolder);
      if (!newest.found) {
        throw InputError("the run has no complete checkpoint",
                         {.where = parent.string(), .remedy = "train it further first"});
      }
      parent = newest.found->path;
    }
    verify_checkpoint(parent);
    report.line("starts from", parent.string());
    if (model.empty()) model = model_files(parent);
  }
  if (model.empty()) {
    throw InputError("no model is named",
                     {.where = "model.path", .remedy = "give a Hugging Face model directory"});
  }
  refuse_adapter(model);
  return model;
}

void report_model(const fs::path& model, const ModelShape& shape, Report& report) {
  int files = 0;
  for (const auto& entry : fs::directory_iterator(model))
    files += entry.path().extension() == ".safetensors";
  report.line(
      "model",
      fmt::format("{}: {:.1f} M parameters{}, {} layers, width {}, {} words, {} "
                  "positions; {}",
                  model.string(), static_cast<double>(shape.parameter_count()) / 1e6,
                  shape.experts > 0
                      ? fmt::format(" ({:.1f} M of a token)",
                                    static_cast<double>(shape.active_parameter_count()) / 1e6)
                      : "",
                  shape.layers.size(), shape.hidden, shape.vocabulary, shape.max_positions,
                  files > 0 ? fmt::format("{} files of weights", files) : "no weights here"));
}

// Returns the median.
std::int64_t report_lengths(std::vector<std::int64_t> lengths, std::int64_t limit, Report& report) {
  std::sort(lengths.begin(), lengths.end());
  const auto at = [&](double share) {
    return lengths[static_cast<std::size_t>(share * static_cast<double>(lengths.size() - 1))];
  };
  const auto over = lengths.end() - std::upper_bound(lengths.begin(), lengths.end(), limit);
  report.line("prompts", fmt::format("{} to {} tokens, median {}, 90 % {}, 99 % {}; {} over the "
                                     "limit of {}",
                                     lengths.front(), lengths.back(), at(0.5), at(0.9), at(0.99),
                                     over, limit));
  return at(0.5);
}

// Ids outside the model's vocabulary would end the run in its first step.
void check_ids(const std::vector<TokenId>& ids, const ModelShape& shape, const fs::path& model) {
  for (const TokenId id : ids) {
    if (id < shape.vocabulary) continue;
    throw InputError(
        fmt::format("the tokenizer gives id {}, the model has {} words", id, shape.vocabulary),
        {.where = model.string(), .remedy = "tokenizer and config.json are of different models"});
  }
}

void report_prompts(const RunConfig& config, const Method& method, const PromptSet& problems,
                    const PromptRenderer& renderer, const ModelShape& shape, const fs::path& model,
                    Report& report) {
  for (std::size_t i = 0; i < std::min<std::size_t>(2, problems.size()); ++i) {
    const std::vector<ChatMessage> messages = renderer.student_messages(problems[i]);
    const std::vector<TokenId> ids = renderer.encode(messages);
    check_ids(ids, shape, model);
    report.block(fmt::format("prompt of '{}', {} tokens", problems[i].id, ids.size()),
                 renderer.text(messages));
  }
  if (!method.needs_teacher()) return;
  const ContextBuilder context(config.context, task_of(config.reward, config.data),
                               static_cast<std::uint64_t>(config.train.seed), renderer);
  const Solution solution = config.context.control == "prompt-alone"
                                ? Solution{ContextSource::kPrompt, ""}
                                : context.from_row(problems[0]);
  const std::vector<ChatMessage> messages = context.teacher_messages(
      problems[0], solution, {.reward = 0.0, .reason = {}, .passed = 0, .total = 0});
  report.block(fmt::format("teacher's prompt of '{}' for a wrong response, shown its {}, {} tokens",
                           problems[0].id, context_source_name(solution.source),
                           renderer.encode(messages).size()),
               renderer.text(messages));
}

void report_benches(const RunConfig& config, Report& report) {
  for (const Benchmark& bench : load_benchmarks(config)) {
    report.line("benchmark", fmt::format("{}: {} problems x {}, graded as {}", bench.name,
                                         bench.problems.size(), bench.n, bench.grader));
  }
}

// The ranks that the command would start, or that it is one of.
Machine machine_at_hand(const RunOptions& options) {
  const Place place = find_place(process_environment());
  const int started = ranks_to_start(options.processes, place, visible_gpus);
  Machine machine{.card = {}, .gpus = place.size, .per_node = place.local_size};
  if (started > 1) machine.gpus = machine.per_node = started;
  return machine;
}

void report_plan(const RunConfig& config, const RunOptions& options, const ModelShape& shape,
                 const ModelShape* teacher, at::Device device, at::ScalarType dtype,
                 std::int64_t prompt_tokens, Report& report, const Warn& warn) {
  Machine machine = machine_at_hand(options);
  const int team = config.dist.shard_over == "node" ? machine.per_node : machine.gpus;
  const auto memory_of = [&](const RankDivision& ranks, double memory = 0) {
    return plan_memory(shape, config, resolve_method(config.method, config.loss), device, dtype,
                       ranks, memory, teacher);
  };
  const double available = static_cast<double>(available_memory(device));
  const double on_host = static_cast<double>(available_memory(at::kCPU)) / machine.per_node;
  const StateForm form =
      chosen_form(possible_forms(config, set_forms(config), machine.gpus, team, device,
                                 {available, std::max(0.0, on_host - kHostReserve)},
                                 [&](const RankDivision& ranks) { return memory_of(ranks); }));
  const MemoryPlan memory = memory_of({.size = machine.gpus,
                                       .members = form.shard == Shard::kNone ? 1 : team,
                                       .shard = form.shard,
                                       .whole_between = form.whole_between,
                                       .offload = form.offload},
                                      available);
  report.gap();
  report.lines(memory_lines(memory));
  report.line("memory",
              fmt::format("{:8.2f} GiB  needed at least{}, on {} in {}; {:.2f} GiB are free",
                          form.needed / (1 << 30),
                          machine.gpus > 1 ? fmt::format(" by each of {} ranks", machine.gpus) : "",
                          device.str(), dtype_name(dtype), available / (1 << 30)));
  report.line("layers", recomputing_text(memory));
  if (const Card* card = card_at_hand(device)) {
    machine.card = *card;
    report.lines(plan_lines(
        plan_run({config, shape, machine, {form.shard, form.offload}, teacher},
                 Lengths::within(std::min(config.rollout.max_sequence_tokens, shape.max_positions),
                                 prompt_tokens, static_cast<std::uint64_t>(config.train.seed)))));
  } else {
    report.line(
        "seconds",
        fmt::format("not known for {}; `antisd plan` has them for other machines", device.str()));
  }
  if (form.on_host > 0)
    report.line("host", fmt::format("{:8.2f} GiB  of each rank by optim.offload = {}{}; {:.2f} GiB "
                                    "are free for each",
                                    form.on_host / (1 << 30), offload_name(form.offload),
                                    teacher != nullptr ? " and the teacher at rest" : "",
                                    on_host / (1 << 30)));
  if (form.fits) return;
  // Only a warning: a run may be planned on another machine.
  warn(fmt::format(
      "training needs about {:.1f} GiB, {} has {:.1f} GiB free: another device, a smaller "
      "train.micro_batch_tokens or rollout.max_sequence_tokens, model.gradient_checkpointing, "
      "dist.shard, optim.offload, model.lora.rank, or a smaller model",
      form.needed / (1 << 30), device.str(), available / (1 << 30)));
}

}  // namespace

const Card* card_at_hand(at::Device device) {
  if (!device.is_cuda()) return nullptr;
  for (const DeviceInfo& gpu : describe_tensor_library().gpus) {
    if (gpu.name == fmt::format("cuda:{}", device.has_index() ? device.index() : 0))
      return card_of_gpu(gpu.description.substr(0, gpu.description.find(',')),
                         static_cast<double>(available_memory(device)));
  }
  return nullptr;
}

// The grader, and what is added to it: "math + 0.2 x form (format <think>.*)".
std::string reward_text(const RewardConfig& reward) {
  std::string text = reward.kind == "command"  ? fmt::format("{} (it answers)", reward.command)
                     : reward.kind == "python" ? fmt::format("{} (it answers)", reward.function)
                                               : reward.kind;
  if (reward.weight != 1) text = fmt::format("{} x {}", reward.weight, text);
  for (const RewardTerm& term : reward_terms(reward))
    text += fmt::format(" + {} x {} ({}{}{})", term.weight, term.name, term.kind,
                        term.argument.empty() ? "" : " ", term.argument);
  return text;
}

void dry_run(const RunConfig& config, const RunOptions& options, Console& console,
             std::ostream& out) {
  Report report(out);
  const Warn warn = [&](std::string_view text) { console.warn(text); };
  const Method method = resolve_method(config.method, config.loss);
  const at::Device device = choose_device(options.device);
  const at::ScalarType dtype = compute_dtype(device, config.model.dtype);
  check_loggers(config.record);
  report.line("method", method_text(method));

  const fs::path model = model_directory(config, report, warn);
  const ModelShape shape = configured_shape(read_model_shape(model / "config.json"), config.model);
  report_model(model, shape, report);
  if (shape.lora) {
    report.line("adapters",
                fmt::format("{}: {:.2f} M parameters are trained", shape.lora->text(),
                            static_cast<double>(shape.trainable_parameter_count()) / 1e6));
  }
  const PromptRenderer renderer = make_renderer(model, config.data, warn);
  const std::optional<TeacherModel> teacher =
      find_teacher(config, model, renderer.tokenizer(), shape);
  if (teacher) report.line("teacher", teacher->text());
  const std::vector<TokenId> stop_ids = find_stop_ids(model, renderer.tokenizer(), warn);
  check_ids(stop_ids, shape, model);
  report.line("tokenizer", fmt::format("responses end with {}", fmt::join(stop_ids, ", ")));
  warn_of_limits(config, method, shape, warn);
  if (const std::string text = unbounded_term_text(method, config.rollout.max_sequence_tokens);
      !text.empty())
    warn(text);

  std::vector<std::int64_t> lengths;
  PromptSetReport found;
  const PromptSet problems = load_problems(config, renderer, found, &lengths);
  report.line("data", found.text());
  const std::int64_t prompt_tokens =
      report_lengths(std::move(lengths), config.data.max_prompt_tokens, report);
  const std::unique_ptr<Grader> grader = make_grader(config.reward);
  grader->probe(grade_request(problems[0], {}));
  for (const std::string& text : grader->take_warnings())
    warn(text);
  report.line("reward", reward_text(config.reward));
  const double passes = static_cast<double>(config.train.steps * config.rollout.prompts_per_step) /
                        static_cast<double>(problems.size());
  report.line("steps", fmt::format("{} of {} problems x {} responses: {:.2f} passes over the data",
                                   config.train.steps, config.rollout.prompts_per_step,
                                   config.rollout.group_size, passes));
  make_schedule(config.optim, config.train.steps);
  report_benches(config, report);
  report_prompts(config, method, problems, renderer, shape, model, report);
  report_plan(config, options, shape, teacher ? &teacher->shape : nullptr, device, dtype,
              prompt_tokens, report, warn);
  const DiskPlan disk = plan_disk(shape, config, dtype, method.slow_teacher());
  report.line("disk", disk.text());
  if (!disk.suffices()) warn(disk.warning());
}

}  // namespace antisd::inline cli
