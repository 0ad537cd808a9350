#include "inference/decode_loop.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/check.h"
#include "inference/prefill.h"

namespace antisd::inline inference {

void DecodeLoop::step() {
  const StepPlan plan = scheduler_.plan();
  if (plan.drain) return take();
  stats_.schedule_s += clock_.lap();
  prefill(plan.chunks);
  pool_.copy(plan.copies);
  stats_.prefill_s += clock_.lap();
  for (const SlotChange& change : plan.slots)
    apply(change);
  stats_.peak_kv_pages = std::max(stats_.peak_kv_pages, pool_.ledger().used());
  stats_.schedule_s += clock_.lap();
  if (plan.rows > 0) {
    decoder_.launch(plan.rows);
    scheduler_.launched();
    ++stats_.steps;
    rows_sum_ += plan.rows;
    stats_.decode_s += clock_.lap();
  }
  if (scheduler_.in_flight() > decoder_.depth() || (plan.rows == 0 && scheduler_.in_flight() > 0))
    take();
}

void DecodeLoop::drain() {
  while (scheduler_.in_flight() > 0)
    take(/*discard=*/true);
}

std::vector<std::int32_t> DecodeLoop::tokens_of(int sequence) {
  std::vector<std::int32_t> tokens = prompt_of(scheduler_.group_of(sequence));
  const std::vector<std::int32_t>& response = response_of(sequence).ids;
  tokens.insert(tokens.end(), response.begin(), response.end());
  return tokens;
}

void DecodeLoop::prefill(const std::vector<PrefillChunk>& chunks) {
  if (chunks.empty()) return;
  std::vector<TokenChunk> work;
  std::vector<std::vector<std::int32_t>> kept;
  kept.reserve(chunks.size());
  for (const PrefillChunk& chunk : chunks) {
    const bool prompt = chunk.sequence < 0;
    if (!prompt) kept.push_back(tokens_of(chunk.sequence));
    const std::vector<std::int32_t>& tokens = prompt ? prompt_of(chunk.group) : kept.back();
    work.push_back(
        {{tokens.data(), static_cast<std::size_t>(chunk.end)},
         chunk.begin,
         prompt ? scheduler_.prompt_pages(chunk.group) : scheduler_.pages_of(chunk.sequence)});
    stats_.prefill_tokens += chunk.end - chunk.begin;
  }
  model_.extend(make_extension(work, model_.device()), pool_.view());
}

void DecodeLoop::apply(const SlotChange& change) {
  switch (change.kind) {
    case SlotChange::Kind::kMove:
      return decoder_.move(change.from, change.slot);
    case SlotChange::Kind::kAppendPage:
      return decoder_.append_page(change.slot, change.page);
    case SlotChange::Kind::kStart:
      break;
  }
  const int group = scheduler_.group_of(change.sequence);
  const std::vector<std::int32_t>& response = response_of(change.sequence).ids;
  const std::size_t length = prompt_of(group).size() + response.size();
  decoder_.start(change.slot, response.empty() ? prompt_of(group).back() : response.back(),
                 static_cast<std::int32_t>(length - 1), scheduler_.pages_of(change.sequence),
                 place_of(change.sequence));
  if (const SequenceSampling* own = sampling_of(group)) decoder_.sample_as(change.slot, *own);
}

void DecodeLoop::take(bool discard) {
  const StepTokens tokens = decoder_.take();
  stats_.decode_s += clock_.lap();
  const std::vector<int> rows = scheduler_.take();
  ANTISD_CHECK_EQ(rows.size(), tokens.ids.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (rows[row] < 0 || discard) {
      ++stats_.surplus_tokens;
    } else {
      receive(rows[row], tokens, row);
    }
  }
  stats_.schedule_s += clock_.lap();
}

void DecodeLoop::receive(int sequence, const StepTokens& tokens, std::size_t row) {
  Response& sample = response_of(sequence);
  if (!std::isfinite(tokens.raw_logp[row])) {
    return not_finite(
        sequence,
        NotFinite(fmt::format(
                      "the model's logits are not finite at token {} of sample {} of prompt {}",
                      sample.ids.size(), place_of(sequence).sample, scheduler_.group_of(sequence)),
                  {.remedy = model_.dtype() == at::kHalf
                                 ? "the activations may be beyond fp16's range: compute in bf16"
                                 : "check the weights with `antisd score --check-weights`"}));
  }
  sample.ids.push_back(tokens.ids[row]);
  sample.sampling_logp.push_back(tokens.logp[row]);
  sample.raw_logp.push_back(tokens.raw_logp[row]);
  ++stats_.new_tokens;
  std::span<const Alternative> others;
  if (!tokens.alternatives.empty()) others = tokens.alternatives[row];
  const bool stopped = stops_at(sequence, tokens.ids[row], others);
  if (!scheduler_.token(sequence, stopped)) return;
  sample.finish = stopped ? FinishReason::kStop : FinishReason::kLength;
  ended(sequence);
}

}  // namespace antisd::inline inference
