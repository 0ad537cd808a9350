#include "trainer/micro_batches.h"

#include "core/check.h"

namespace antisd {

std::vector<RolloutNumbers> cut_mini_batches(const RolloutBatch& batch, std::int64_t parts) {
  ANTISD_CHECK_LT(0, parts);
  std::vector<RolloutNumbers> cut(static_cast<std::size_t>(parts));
  const std::size_t groups = batch.groups.size(), size = batch.group_size();
  for (std::size_t part = 0; part < cut.size(); ++part) {
    const std::size_t end = (part + 1) * groups / cut.size() * size;
    for (std::size_t r = part * groups / cut.size() * size; r < end; ++r) {
      if (!batch[r].grade.failed()) cut[part].push_back(r);
    }
  }
  return cut;
}

std::vector<RolloutNumbers> cut_micro_batches(const PromptBatch& prompts, const RolloutBatch& batch,
                                              std::span<const std::size_t> rollouts,
                                              std::int64_t limit) {
  std::vector<RolloutNumbers> cut;
  std::int64_t tokens = 0;
  std::size_t last_prompt = 0;
  for (const std::size_t r : rollouts) {
    const std::size_t prompt = r / batch.group_size();
    const std::int64_t response = std::ssize(batch[r].response_ids);
    const std::int64_t alone = std::ssize(prompts.prompts[prompt].ids) + response;
    const std::int64_t more = !cut.empty() && prompt == last_prompt ? response : alone;
    if (cut.empty() || tokens + more > limit) {
      cut.emplace_back();
      tokens = alone;
    } else {
      tokens += more;
    }
    cut.back().push_back(r);
    last_prompt = prompt;
  }
  return cut;
}

}  // namespace antisd
