#include "trainer/teacher_states.h"

#include <ATen/ATen.h>

#include "core/check.h"

namespace antisd::inline trainer {

void TeacherStates::look(const CausalLm& teacher, std::span<const TargetSequence> shown,
                         std::span<const std::size_t> numbers, double temperature) {
  ANTISD_CHECK_EQ(shown.size(), numbers.size());
  const Passage passage = lay_out(shown, teacher.device());
  const at::Tensor hidden = hidden_before_targets(teacher, passage);
  std::vector<TokenScores> scores =
      to_host(passage, score_targets(teacher, passage, hidden, temperature));
  const at::Tensor on_host = hidden.to(at::kCPU);
  std::int64_t row = 0;
  for (std::size_t s = 0; s < shown.size(); ++s) {
    const auto count = static_cast<std::int64_t>(passage.counts[s]);
    by_number_[numbers[s]] = {on_host.narrow(0, row, count), std::move(scores[s])};
    row += count;
  }
}

const TeacherStates::Seen& TeacherStates::at(const TargetSequence& sequence) const {
  const auto found = by_number_.find(sequence.number);
  ANTISD_CHECK(found != by_number_.end());
  ANTISD_CHECK_EQ(found->second.scores.logp.size(), sequence.targets.size());
  return found->second;
}

at::Tensor TeacherStates::hidden_of(std::span<const TargetSequence> sequences,
                                    at::Device device) const {
  std::vector<at::Tensor> parts;
  for (const TargetSequence& sequence : sequences)
    parts.push_back(at(sequence).hidden);
  return at::cat(parts).to(device);
}

std::vector<TokenScores> TeacherStates::scores_of(std::span<const TargetSequence> sequences) const {
  std::vector<TokenScores> scores;
  for (const TargetSequence& sequence : sequences)
    scores.push_back(at(sequence).scores);
  return scores;
}

}  // namespace antisd::inline trainer
