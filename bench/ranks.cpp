#ifdef ANTISD_TORCH

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "algo/gate_signal.h"
#include "algo/response_text.h"
#include "bench/benchmarks.h"
#include "bench/clock.h"
#include "bench/echo.h"
#include "bench/options.h"
#include "bench/shapes.h"
#include "bench/synthetic_step.h"
#include "context/context_builder.h"
#include "dist/agreement.h"
#include "io/json.h"
#include "trainer/alike_groups.h"
#include "trainer/policy_objective.h"
#include "trainer/rank_messages.h"
#include "trainer/step_record.h"

namespace antisd::bench {
namespace {

// Seconds of sampling and update, as computed for 8B and such responses, by number of GPUs.
const std::map<int, double> kPredictedSteps = {{1, 828 + 260}, {8, 268 + 33}, {64, 193 + 5}};
constexpr double kHostBar = 0.02;
constexpr const char* kDump = "dump (rank 0, if it is due)";

struct RanksOptions {
  std::string model, data;
  std::string clock = "wall";
  std::vector<int> ranks = {1, 8, 64};
  SyntheticSizes sizes;
  int repeats = 3;
  bool dump = false, json = false;
};

// Seconds by part, in the order of a step.
class PartTimes {
 public:
  explicit PartTimes(bool processor_time) : clock_(at::kCPU, processor_time) {}

  void skip() { clock_.lap(); }  // what was done since the last lap is not the rank's work
  void lap(const std::string& part) { add(part, clock_.lap()); }
  void add(const std::string& part, double seconds) { parts_.emplace_back(part, seconds); }
  double since_last() { return clock_.lap(); }
  const std::vector<std::pair<std::string, double>>& parts() const { return parts_; }

  // The shorter time of each part.
  void take_best(const PartTimes& other) {
    for (std::size_t i = 0; i < parts_.size(); ++i)
      parts_[i].second = std::min(parts_[i].second, other.parts_[i].second);
  }

 private:
  Clock clock_;
  std::vector<std::pair<std::string, double>> parts_;
};

// The host's work of one rank in a step, as Trainer does it, without the passes over the model and
// without the time that messages travel.
class HostWork {
 public:
  HostWork(const RanksOptions& options, const SyntheticStep& input, const CausalLm& model,
           int ranks)
      : options_(options),
        input_(input),
        model_(model),
        size_(static_cast<std::size_t>(ranks)),
        context_(input.config.context, task_of(input.config.reward, input.config.data), 0,
                 input.renderer) {
    deal_rollouts();
  }

  PartTimes run() {
    bytes_ = 0;
    Rollouts own = own_;
    StepRecord record{.step = 1};
    PartTimes times(options_.clock == "cpu");
    record.prompts = input_.renderer.batch(0, input_.problems, input_.indices);
    times.lap("prompts");
    for (ResponseGroup& group : own.batch.groups)
      add_texts(group.responses, input_.renderer.tokenizer());
    times.lap("texts of its responses");
    record.batch = exchange(std::move(own), times);
    context_.build(record.prompts, record.batch);
    times.lap("contexts");
    score(record.batch, times);
    EntropyGate gate(input_.method.gate);
    record.gate = gate.observe(gate_statistic(
        input_.method.gate,
        gate_values(input_.method, scores_of(record.batch, &Response::teacher), {})));
    record.gate.position = GatePosition::kOpen;  // with the term
    set_advantages(record.batch);
    record.shaping = make_shaping(input_.method, record.gate, {}, record.batch);
    times.lap("gate and shaping");
    update(record, times);
    step_metrics(record);
    AlikeGroups(input_.method).observe(record.batch);
    times.lap("metrics");
    if (options_.dump) {
      for (std::size_t r = 0; r < record.batch.size(); ++r)
        to_json_line(rollout_row(record, r));
      times.lap(kDump);
    }
    return times;
  }

  double megabytes() const { return static_cast<double>(bytes_) / 1e6; }  // that every rank gets

 private:
  // The share of the rank that has most; the messages of all.
  void deal_rollouts() {
    std::size_t most = 0;
    const auto& groups = input_.batch.groups;
    for (std::size_t r = 0; r < size_; ++r) {
      Rollouts share;
      share.batch.groups.assign(groups.begin() + std::ptrdiff_t(r * groups.size() / size_),
                                groups.begin() + std::ptrdiff_t((r + 1) * groups.size() / size_));
      MessageWriter writer;
      write(writer, share);
      rollouts_.push_back(agreed(writer));
      if (rollouts_.back().size() <= most) continue;
      most = rollouts_.back().size();
      rank_ = static_cast<int>(r);
      own_ = std::move(share);
    }
  }

  Echo others(const std::vector<std::string>& messages) {
    for (std::size_t i = 0; i < messages.size() && size_ > 1; ++i)
      bytes_ += messages[i].size();
    return Echo(rank_, messages);
  }

  ResponseBatch exchange(Rollouts own, PartTimes& times) {
    if (size_ == 1) return std::move(own.batch);
    Echo ranks = others(rollouts_);
    times.skip();
    Rollouts all = join_rollouts(gather_agreed(ranks, [&] {
      MessageWriter writer;
      write(writer, own);
      return writer.bytes();
    }));
    times.lap("responses to all");
    return std::move(all.batch);
  }

  void score(ResponseBatch& batch, PartTimes& times) {
    std::vector<ScoreRequest> requests;
    for (std::size_t r = 0; r < batch.size(); ++r)
      requests.push_back({batch[r].context.prompt_ids, batch[r].ids});
    // Part `size_` is nobody's: the work is dealt out, and nothing goes through the model.
    antisd::score(model_, requests, {.pack = {}, .part = size_, .parts = size_});
    times.lap("scoring dealt out");
    std::vector<std::string> messages;
    std::vector<TokenScores> own;
    for (std::size_t r = 0; r < size_; ++r) {
      std::vector<TokenScores> part(batch.size());
      for (std::size_t i = r; i < part.size(); i += size_)
        part[i] = input_.teachers[i];
      MessageWriter writer;
      write(writer, part);
      messages.push_back(agreed(writer));
      if (static_cast<int>(r) == rank_) own = std::move(part);
    }
    Echo ranks = others(messages);
    times.skip();
    std::vector<TokenScores> all =
        size_ == 1 ? std::move(own) : gather_scores(ranks, [&] { return std::move(own); });
    for (std::size_t r = 0; r < batch.size(); ++r)
      batch[r].teacher = std::move(all[r]);
    if (size_ > 1) times.lap("scores to all");
  }

  void update(StepRecord& record, PartTimes& times) {
    const std::vector<TargetSequence> sequences =
        student_sequences(record.prompts, record.batch, cut_mini_batches(record.batch, 1).front());
    const MeanOver mean = mean_over(sequences);
    const std::vector<IndexRange> runs =
        cut_sequences(sequences, input_.config.train.micro_batch_tokens, std::ssize(rollouts_));
    times.lap("update dealt out");

    const auto in_run = [&](std::size_t i) {
      return std::span(sequences).subspan(runs[i].begin, runs[i].size());
    };
    const auto is_own = [&](std::size_t i) { return static_cast<int>(i % size_) == rank_; };
    PolicyObjective objective(record.shaping, record.batch, /*off_policy=*/false);
    std::vector<MicroBatchResult> results(runs.size());
    std::vector<MessageWriter> writers(size_);
    double losses = 0;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      PassView view{.sequences = in_run(i), .mean = mean};
      for (const TargetSequence& sequence : view.sequences)
        view.student.push_back(input_.students[sequence.number]);
      times.skip();
      Derivative derivative = objective.differentiate(view);
      if (is_own(i)) losses += times.since_last();
      MicroBatchResult result{.student = std::move(view.student), .loss = derivative.loss};
      write(writers[i % size_], result);
      if (is_own(i)) results[i] = std::move(result);
    }
    times.add("losses of its micro-batches", losses);
    std::vector<std::string> messages;
    for (const MessageWriter& writer : writers)
      messages.push_back(writer.bytes());
    Echo ranks = others(messages);
    times.skip();
    exchange_results(ranks, results);
    if (size_ > 1) times.lap("results to all");
    for (std::size_t i = 0; i < runs.size(); ++i) {
      objective.account(in_run(i), results[i], mean);
      add_first_sight(in_run(i), results[i], /*off_policy=*/false, record.batch,
                      record.update.sums);
    }
    record.update.sums.add(objective.sums);
    record.update.updates = 1;
    times.lap("losses and sums of all");
  }

  const RanksOptions& options_;
  const SyntheticStep& input_;
  const CausalLm& model_;
  std::size_t size_;
  ContextBuilder context_;
  int rank_ = 0;
  Rollouts own_;
  std::vector<std::string> rollouts_;  // messages, by rank
  std::size_t bytes_ = 0;
};

void print(const RanksOptions& options, int ranks, const PartTimes& times, double megabytes) {
  double whole = 0, dump = 0;
  for (const auto& [part, seconds] : times.parts())
    (part == kDump ? dump : whole) += seconds;
  const auto predicted = kPredictedSteps.find(ranks);
  if (options.json) {
    Json row = {{"bench", "ranks"},
                {"ranks", ranks},
                {"seconds", whole},
                {"dump_seconds", dump},
                {"message_mb", megabytes}};
    for (const auto& [part, seconds] : times.parts())
      row["parts"][part] = seconds;
    fmt::print("{}\n", to_json_line(row));
    return;
  }
  fmt::print("{} rank{}: {:.3f} s of a step", ranks, ranks == 1 ? "" : "s", whole);
  if (predicted != kPredictedSteps.end())
    fmt::print(", {:.2f} % of the {:.0f} s predicted for 8B (bar {:.0f})",
               100 * whole / predicted->second, predicted->second, 100 * kHostBar);
  fmt::print("; {:.1f} MB of messages\n", megabytes);
  for (const auto& [part, seconds] : times.parts())
    fmt::print("  {:<28} {:8.3f} s\n", part, seconds);
}

}  // namespace

int run_ranks(const Arguments& arguments) {
  RanksOptions options;
  CLI::App app("the host's work of a rank in a step, by number of ranks", "antisd-bench ranks");
  app.add_option("--model", options.model, "directory with a tokenizer")->required();
  app.add_option("--data", options.data, "data set with solutions, for prompts and responses")
      ->required();
  app.add_option("--ranks", options.ranks, "numbers of ranks")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  add_number(app, "--prompts", options.sizes.prompts, 1, 1 << 16, "problems in a step");
  add_number(app, "--group", options.sizes.group, 2, 4096, "responses a problem");
  add_number(app, "--mean", options.sizes.mean, 1, 1 << 20, "tokens of a response");
  add_number(app, "--longest", options.sizes.longest, 1, 1 << 20, "tokens of a response");
  add_number(app, "--repeats", options.repeats, 1, 1000, "the fastest of each part counts");
  add_clock_option(app, options.clock);
  app.add_flag("--dump", options.dump, "with the rows that rank 0 writes if the step is dumped");
  app.add_flag("--json", options.json, "one line of JSON per number of ranks");
  if (const auto status = parse(app, arguments)) return *status;

  const SyntheticStep input(options.model, options.data, options.sizes);
  ModelShape shape = named_shape("tiny");  // for the checks of ids and lengths
  shape.vocabulary = input.renderer.tokenizer().vocabulary_size();
  shape.max_positions = 2 * options.sizes.longest;
  const CausalLm model(shape, at::kCPU, at::kFloat);
  if (!options.json)
    fmt::print("{} responses of {} tokens in all, up to {}\n", input.batch.size(), input.tokens,
               options.sizes.longest);
  for (const int ranks : options.ranks) {
    HostWork work(options, input, model, ranks);
    PartTimes times = work.run();
    for (int i = 1; i < options.repeats; ++i)
      times.take_best(work.run());
    print(options, ranks, times, work.megabytes());
  }
  return 0;
}
}  // namespace antisd::bench

#endif
