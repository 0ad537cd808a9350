#include "trainer/mini_batches.h"

#include "core/check.h"

namespace antisd::inline trainer {

std::vector<ResponseNumbers> cut_mini_batches(const ResponseBatch& batch, std::int64_t parts,
                                              bool leave_out_truncated) {
  ANTISD_CHECK_LT(0, parts);
  std::vector<ResponseNumbers> cut(static_cast<std::size_t>(parts));
  const std::size_t groups = batch.groups.size(), size = batch.group_size();
  for (std::size_t part = 0; part < cut.size(); ++part) {
    const std::size_t end = (part + 1) * groups / cut.size() * size;
    for (std::size_t r = part * groups / cut.size() * size; r < end; ++r) {
      const bool left_out = leave_out_truncated && batch[r].truncated();
      if (!batch[r].verdict.failed() && !left_out) cut[part].push_back(r);
    }
  }
  return cut;
}

std::vector<TargetSequence> student_sequences(const PromptBatch& prompts,
                                              const ResponseBatch& batch,
                                              std::span<const std::size_t> numbers) {
  std::vector<TargetSequence> sequences;
  for (const std::size_t r : numbers) {
    const std::size_t prompt = r / batch.group_size();
    const std::vector<TokenId>& ids = prompts.prompts[prompt].ids;
    const bool same_prompt =
        !sequences.empty() && sequences.back().number / batch.group_size() == prompt;
    TargetSequence& sequence = sequences.emplace_back(continuation(ids, batch[r].ids));
    sequence.number = r;
    sequence.shared = same_prompt ? std::ssize(ids) : 0;
  }
  return sequences;
}

std::vector<TargetSequence> teacher_sequences(const ResponseBatch& batch,
                                              std::span<const std::size_t> numbers) {
  std::vector<TargetSequence> sequences;
  for (const std::size_t r : numbers) {
    ANTISD_CHECK(!batch[r].context.prompt_ids.empty());
    sequences.push_back(continuation(batch[r].context.prompt_ids, batch[r].ids));
  }
  return sequences;
}

}  // namespace antisd::inline trainer
