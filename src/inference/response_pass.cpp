#include "inference/response_pass.h"

#include <numeric>

#include <ATen/ATen.h>

namespace antisd::inline inference {

TargetSequence continuation(const std::vector<std::int32_t>& prompt_ids,
                            const std::vector<std::int32_t>& response_ids) {
  TargetSequence sequence;
  sequence.ids.reserve(prompt_ids.size() + response_ids.size());
  sequence.ids = prompt_ids;
  sequence.ids.insert(sequence.ids.end(), response_ids.begin(), response_ids.end());
  sequence.targets.resize(response_ids.size());
  std::iota(sequence.targets.begin(), sequence.targets.end(), std::ssize(prompt_ids));
  return sequence;
}

Passage lay_out(std::span<const TargetSequence> sequences, at::Device device, PackOptions options) {
  std::vector<std::vector<std::int32_t>> ids;
  ids.reserve(sequences.size());
  for (const TargetSequence& sequence : sequences)
    ids.push_back(sequence.ids);
  Passage passage{.batch = pack(ids, device, options), .rows = {}, .targets = {}, .counts = {}};
  std::vector<std::int64_t> rows;
  std::vector<std::int32_t> targets;
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    for (const std::int64_t position : sequences[s].targets) {
      rows.push_back(passage.batch.rows[s][static_cast<std::size_t>(position) - 1]);
      targets.push_back(sequences[s].ids[static_cast<std::size_t>(position)]);
    }
    passage.counts.push_back(sequences[s].targets.size());
  }
  passage.rows = at::tensor(at::ArrayRef<std::int64_t>(rows), at::kLong).to(device);
  passage.targets = at::tensor(at::ArrayRef<std::int32_t>(targets), at::kInt).to(device);
  return passage;
}

at::Tensor hidden_before_targets(const CausalLm& model, const Passage& passage, Pass pass,
                                 std::size_t kept_layers) {
  const at::AutoGradMode recording(gradients_of(pass) == Gradients::kRecorded);
  return model.hidden_states(passage.batch, pass, kept_layers).index_select(0, passage.rows);
}

TokenScoreTensors score_targets(const CausalLm& model, const Passage& passage,
                                const at::Tensor& hidden, double temperature, Gradients gradients) {
  return token_scores(hidden, model.head().weight, passage.targets, temperature,
                      model.shape().vocabulary, gradients);
}

std::vector<TokenScores> to_host(const Passage& passage, const TokenScoreTensors& scores) {
  const at::Tensor logp = scores.logp.detach().to(at::kCPU),
                   entropy = scores.entropy.detach().to(at::kCPU);
  const float *next_logp = logp.const_data_ptr<float>(),
              *next_entropy = entropy.const_data_ptr<float>();
  std::vector<TokenScores> by_sequence;
  for (const std::size_t count : passage.counts) {
    by_sequence.push_back({{next_logp, next_logp + count}, {next_entropy, next_entropy + count}});
    next_logp += count;
    next_entropy += count;
  }
  return by_sequence;
}

}  // namespace antisd::inline inference
