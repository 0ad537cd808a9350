#include "plan/sampling_time.h"

#include <algorithm>
#include <vector>

#include "inference/scheduler.h"
#include "ops/paged_attention.h"

namespace antisd::inline plan {
namespace {

constexpr int kDepth = 1;  // of the GPU's decoder: steps that the engine is behind

struct Simulated {
  std::int64_t prompt = 0, length = 0, received = 0;
};

std::vector<Simulated> sequences_of(std::span<const GroupLengths> groups) {
  std::vector<Simulated> sequences;
  for (const GroupLengths& group : groups)
    for (const std::int64_t length : group.responses)
      sequences.push_back({group.prompt, length});
  return sequences;
}

double prefill_seconds(const PassTime& time, const StepPlan& plan) {
  PassWork work;
  for (const PrefillChunk& chunk : plan.chunks) {
    work.tokens += static_cast<double>(chunk.end - chunk.begin);
    work.attention += time.attention_flops(chunk.begin, chunk.end);
  }
  return plan.chunks.empty() ? 0 : time.forward(work);
}

// A step has the given rows; -1 is a sequence that had ended.
double step_seconds(const PassTime& time, const std::vector<Simulated>& sequences,
                    const std::vector<int>& rows) {
  double bytes = 0;
  for (const int row : rows) {
    if (row < 0) continue;
    const Simulated& sequence = sequences[static_cast<std::size_t>(row)];
    bytes += time.kv_bytes(sequence.prompt + sequence.received);
  }
  return time.decode_step(static_cast<double>(rows.size()), bytes);
}

double longest_alone(const PassTime& time, const std::vector<Simulated>& sequences) {
  const auto longest = std::ranges::max_element(sequences, {}, &Simulated::length);
  const double steps = static_cast<double>(longest->length);
  return steps * time.decode_step(1, time.kv_bytes(longest->prompt + longest->length / 2));
}

}  // namespace

SamplingTime simulate_sampling(const PassTime& time, std::span<const GroupLengths> groups,
                               const SamplingLimits& limits) {
  SamplingTime found;
  if (groups.empty()) return found;
  std::vector<GroupShape> shapes;
  for (const GroupLengths& group : groups) {
    shapes.push_back({group.prompt, static_cast<int>(group.responses.size()),
                      std::max<std::int64_t>(1, limits.longest - group.prompt)});
  }
  std::vector<Simulated> sequences = sequences_of(groups);
  PageLedger ledger(limits.pages);
  Scheduler scheduler(ledger,
                      {.page_tokens = kPageTokens,
                       .slots = limits.slots,
                       .prefill_chunk_tokens = limits.prefill_tokens},
                      shapes);
  const auto take = [&] {
    const std::vector<int> rows = scheduler.take();
    found.decode += step_seconds(time, sequences, rows);
    ++found.steps;
    for (const int row : rows) {
      if (row < 0) continue;
      Simulated& sequence = sequences[static_cast<std::size_t>(row)];
      ++found.new_tokens;
      scheduler.token(row, ++sequence.received >= sequence.length);
    }
  };
  while (!scheduler.done()) {
    const StepPlan plan = scheduler.plan();
    if (plan.drain) {
      take();
      continue;
    }
    found.prefill += prefill_seconds(time, plan);
    if (plan.rows > 0) scheduler.launched();
    if (scheduler.in_flight() > kDepth || (plan.rows == 0 && scheduler.in_flight() > 0)) take();
  }
  found.preemptions = scheduler.preemptions();
  found.longest = longest_alone(time, sequences);
  return found;
}

}  // namespace antisd::inline plan
