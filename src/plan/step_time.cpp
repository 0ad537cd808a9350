#include "plan/step_time.h"

#include <algorithm>
#include <limits>

#include "algo/loss_terms.h"
#include "inference/rollout_engine.h"
#include "inference/token_runs.h"
#include "ops/paged_attention.h"
#include "plan/benchmark_sizes.h"
#include "trainer/gradient_pass.h"

namespace antisd::inline plan {
namespace {

constexpr std::int64_t kTemplate = 64;  // tokens of the words around a teacher's context
constexpr double kMessageBytes = 16;    // of a response's token: id, two log-probabilities, text

std::vector<PassSequence> student_sequences_of(std::span<const GroupLengths> groups) {
  std::vector<PassSequence> sequences;
  for (const GroupLengths& group : groups) {
    for (std::size_t s = 0; s < group.responses.size(); ++s) {
      sequences.push_back(
          {group.prompt + group.responses[s], s > 0 ? group.prompt : 0, group.responses[s]});
    }
  }
  return sequences;
}

// A solution that a teacher is shown: a response that ended before the limit.
std::int64_t solution_tokens(const GroupLengths& group, std::int64_t longest) {
  std::int64_t ended = 0, tokens = 0;
  for (const std::int64_t length : group.responses) {
    if (group.prompt + length >= longest) continue;
    ++ended;
    tokens += length;
  }
  return ended > 0 ? tokens / ended : longest;
}

// Each response after a context of its own: the problem, which neighbours share, and a solution.
std::vector<PassSequence> teacher_sequences_of(std::span<const GroupLengths> groups,
                                               const RunConfig& config) {
  std::vector<PassSequence> sequences;
  for (const GroupLengths& group : groups) {
    const std::int64_t context =
        group.prompt + kTemplate +
        std::min(solution_tokens(group, config.rollout.max_sequence_tokens),
                 config.context.max_solution_tokens);
    for (std::size_t s = 0; s < group.responses.size(); ++s) {
      sequences.push_back(
          {context + group.responses[s], s > 0 ? group.prompt : 0, group.responses[s]});
    }
  }
  return sequences;
}

std::vector<RunItem> items_of(std::span<const PassSequence> sequences) {
  std::vector<RunItem> items;
  for (const PassSequence& sequence : sequences)
    items.push_back({sequence.tokens, sequence.shared});
  return items;
}

// The trainer's own cut of a mini-batch.
std::vector<IndexRange> micro_batches_of(std::span<const PassSequence> sequences,
                                         const TrainConfig& train, int ranks) {
  std::vector<TargetSequence> targets;
  for (const PassSequence& sequence : sequences) {
    targets.push_back({.ids = std::vector<std::int32_t>(static_cast<std::size_t>(sequence.tokens)),
                       .targets = {},
                       .number = targets.size(),
                       .shared = sequence.shared});
  }
  return cut_sequences(targets, train.micro_batch_tokens,
                       train.micro_batches > 0 ? train.micro_batches : ranks);
}

}  // namespace

Traffic& Traffic::operator+=(const Traffic& other) {
  hidden += other.hidden;
  exposed += other.exposed;
  return *this;
}

StepModel::StepModel(const RunConfig& config, const ModelShape& shape, const Machine& machine,
                     const RankDivision& ranks, std::size_t kept_layers)
    : config_(config),
      shape_(shape),
      method_(resolve_method(config.method, config.loss)),
      machine_(machine),
      ranks_(ranks),
      held_(shape, ranks),
      time_(shape, rates_of(machine.card)),
      recomputed_(1 - static_cast<double>(kept_layers) / static_cast<double>(shape.layers.size())) {
}

std::int64_t StepModel::longest() const {
  return std::min(config_.rollout.max_sequence_tokens, shape_.max_positions);
}

double StepModel::spread(double bytes, int size) const {
  if (size == 1) return 0;
  const double share = time_.rates().link_share;
  const int near = std::min(size, machine_.per_node);
  const double within = bytes * (near - 1) / size / (machine_.card.link * share);
  const double between = bytes * (size - near) / size / (machine_.network * share);
  return std::max(within, between);
}

// The next layer arrives while one computes. Copying it into place takes the card's own time.
double StepModel::fetch_wait(double pass) const {
  if (ranks_.shard != Shard::kWeights || ranks_.whole_between) return 0;
  const double elements = held_.whole_layers();
  return std::max(0.0, spread(kElementBytes * elements, ranks_.members) - pass) +
         elements * time_.rates().fetch;
}

StepTime StepModel::step(const Lengths& lengths, double cache_bytes) const {
  const std::vector<GroupLengths> groups =
      lengths.groups(config_.rollout.prompts_per_step, config_.rollout.group_size, longest());
  StepTime step;
  add_sampling(groups, cache_bytes, step);
  add_scoring(groups, step);
  add_update(groups, step);
  return step;
}

SamplingTime StepModel::sample(std::span<const GroupLengths> groups, double cache_bytes,
                               std::int64_t longest) const {
  // What the engine asks for if there is enough memory, and what it needs for one sequence.
  const SchedulerLimits limits = engine_limits(at::Device(at::kCUDA), EngineOptions());
  std::vector<GroupShape> shapes;
  for (const GroupLengths& group : groups) {
    shapes.push_back({.prompt_tokens = group.prompt,
                      .samples = static_cast<int>(std::ssize(group.responses)),
                      .max_new_tokens = longest - group.prompt});
  }
  const std::int64_t most = Scheduler::pages_wanted(shapes, limits);
  const std::int64_t least = Scheduler::pages_needed(longest, kPageTokens);
  const double given = cache_bytes / (time_.kv_bytes_stored() * kPageTokens);
  SamplingTime found = simulate_sampling(
      time_, groups,
      {.pages = std::max(least, static_cast<std::int64_t>(std::min(given, double(most)))),
       .slots = limits.slots,
       .longest = longest});
  if (found.steps > 0) {
    const double steps = static_cast<double>(found.steps);
    const double waits = steps * fetch_wait(found.decode / steps);
    found.decode += waits;
    found.longest += waits;
  }
  return found;
}

// Each rank samples its share of the prompts (Trainer).
void StepModel::add_sampling(const std::vector<GroupLengths>& groups, double cache_bytes,
                             StepTime& step) const {
  const auto size = static_cast<std::size_t>(ranks_.size);
  double tokens = 0;
  std::span<const GroupLengths> slowest;
  for (std::size_t rank = 0; rank < size; ++rank) {
    const std::size_t begin = rank * groups.size() / size, end = (rank + 1) * groups.size() / size;
    const auto share = std::span(groups).subspan(begin, end - begin);
    const SamplingTime own = sample(share, cache_bytes, longest());
    tokens += static_cast<double>(own.new_tokens);
    step.sampling_mean += own.seconds() / ranks_.size;
    if (own.seconds() <= step.sampling.seconds()) continue;
    step.sampling = own;
    slowest = share;
  }
  step.sampling_unbounded =
      sample(slowest, std::numeric_limits<double>::max(), longest()).seconds();
  step.sampling_start = time_.rates().sampling_start;
  if (ranks_.size > 1) step.traffic.exposed += tokens * kMessageBytes / time_.rates().messages;
}

// As score() deals runs out to the parts.
double StepModel::score_all(const std::vector<PassSequence>& sequences) const {
  const std::vector<RunItem> items = items_of(sequences);
  std::int64_t most = config_.train.micro_batch_tokens;
  if (ranks_.size > 1) {
    std::int64_t all = 0;
    for (const RunItem& item : items)
      all += item.tokens - item.shared;
    most = std::min(most, all / ranks_.size + 1);
  }
  const std::vector<IndexRange> runs = cut_runs(items, {.most = most});
  const std::vector<std::size_t> dealt =
      deal_runs(items, runs, static_cast<std::size_t>(ranks_.size));
  std::vector<double> seconds(static_cast<std::size_t>(ranks_.size), 0);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const PassWork work =
        time_.work_of(std::span(sequences).subspan(runs[i].begin, runs[i].size()));
    const double layers = time_.forward(work);
    seconds[dealt[i]] += layers + fetch_wait(layers) + time_.head(work);
  }
  return *std::ranges::max_element(seconds);
}

void StepModel::add_scoring(const std::vector<GroupLengths>& groups, StepTime& step) const {
  const bool several = config_.train.minibatches * config_.train.epochs > 1;
  const bool moves = method_.teacher_moves() && several;
  if (method_.scores_teacher() || (method_.distils && (moves || method_.other_teacher)))
    step.scoring += score_all(teacher_sequences_of(groups, config_));
  if (several || method_.gates_on_student() || config_.reward.kl_coef > 0)
    step.scoring += score_all(student_sequences_of(groups));
  if (keeps_reference(config_)) step.scoring += score_all(student_sequences_of(groups));
}

double StepModel::pass_seconds(std::span<const PassSequence> own,
                               std::span<const PassSequence> shown) const {
  const PassWork work = time_.work_of(own);
  double seconds = time_.forward(work) + time_.head(work) + time_.backward(work, recomputed_);
  if (method_.distils) {  // its teacher runs in the same pass, unless it is another model
    const PassWork teacher = time_.work_of(shown);
    seconds += 2 * time_.head(teacher);
    if (!method_.other_teacher) seconds += time_.forward(teacher);
  }
  return seconds;
}

// Of masters and moments, that an update streams each way.
double StepModel::host_bytes() const {
  switch (ranks_.offload) {
    case Offload::kNone:
      return 0;
    case Offload::kMoments:
      return 8 * held_.own_part();
    case Offload::kAll:
      return 12 * held_.own_part();
  }
  return 0;
}

void StepModel::add_update(const std::vector<GroupLengths>& groups, StepTime& step) const {
  const auto size = static_cast<std::size_t>(ranks_.size);
  // Gradients of layers travel while others are computed; with divided weights, so do the layers,
  // once for each forward and for the backward pass.
  const bool divided = ranks_.shard == Shard::kWeights;
  const int fetches = method_.distils && method_.teacher_moves() ? 3 : 2;
  const double sent_layers =
      spread(kElementBytes * held_.sent_of_layers(), ranks_.size) +
      (divided ? fetches * spread(kElementBytes * held_.whole_layers(), ranks_.members) : 0);
  const double sent_rest =
      spread(kElementBytes * (held_.sent() - held_.sent_of_layers()), ranks_.size);
  // What ranks copy and add up for it on their own cards.
  const Rates& rates = time_.rates();
  const double handled = ranks_.size == 1 ? 0
                                          : rates.exchange_start + held_.sent() * rates.exchange +
                                                (divided ? held_.whole_layers() * rates.fetch : 0);
  const auto parts = static_cast<std::size_t>(config_.train.minibatches);
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t begin = part * groups.size() / parts,
                      end = (part + 1) * groups.size() / parts;
    if (begin == end) continue;
    const auto own = std::span(groups).subspan(begin, end - begin);
    const std::vector<PassSequence> sequences = student_sequences_of(own);
    const std::vector<PassSequence> shown = teacher_sequences_of(own, config_);
    const std::vector<IndexRange> runs = micro_batches_of(sequences, config_.train, ranks_.size);
    step.micro_batches += std::ssize(runs) * config_.train.epochs;
    StepTime once;
    for (std::size_t first = 0; first < runs.size(); first += size) {
      double slowest = 0;
      for (std::size_t i = first; i < std::min(runs.size(), first + size); ++i) {
        slowest = std::max(slowest,
                           pass_seconds(std::span(sequences).subspan(runs[i].begin, runs[i].size()),
                                        std::span(shown).subspan(runs[i].begin, runs[i].size())));
      }
      once.update += slowest;
      const double hidden = std::min(sent_layers, slowest);
      once.traffic += {hidden, sent_layers - hidden + sent_rest + handled};
      ++once.rounds;
    }
    const bool sums = ranks_.size > 1 || runs.size() > 1;
    const double adamw = time_.adamw(held_.own_part(), sums ? 4 : kElementBytes);
    once.streaming = std::max(0.0, host_bytes() / rates.host_stream - adamw);
    once.update += adamw + once.streaming;
    // Teams exchange sums; members collect values, divided ones too.
    const int teams = ranks_.size / ranks_.members;
    once.traffic.exposed += spread(kElementBytes * held_.trainable(), ranks_.members);
    if (teams > 1) once.traffic.exposed += spread(4 * held_.own_chunk() * teams, ranks_.size);
    for (std::int64_t epoch = 0; epoch < config_.train.epochs; ++epoch) {
      step.update += once.update;
      step.streaming += once.streaming;
      step.traffic += once.traffic;
      step.rounds += once.rounds;
    }
  }
}

// Benchmarks follow each other; of each, rank r samples problems r, r + size, and so on.
double StepModel::evaluation(const Lengths& lengths, double cache_bytes,
                             std::vector<std::string>& unknown) const {
  const std::int64_t longest = std::min(config_.eval.max_sequence_tokens, shape_.max_positions);
  double seconds = 0;
  std::uint32_t salt = 1;
  for (const BenchmarkSize& bench : benchmark_sizes(config_, unknown)) {
    const std::int64_t own = (bench.problems + ranks_.size - 1) / ranks_.size;
    const std::vector<GroupLengths> groups = lengths.groups(own, bench.samples, longest, salt++);
    seconds += time_.rates().sampling_start + sample(groups, cache_bytes, longest).seconds();
  }
  return seconds;
}

}  // namespace antisd::inline plan
