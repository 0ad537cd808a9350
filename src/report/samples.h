// Responses of a step from rollouts/step-NNNNNN.jsonl, without the numbers per token.
#pragma once

#include <cstdint>

#include "io/json.h"
#include "report/folder.h"

namespace antisd::inline report {

struct SampleLimits {
  std::int64_t file_bytes = 64 << 20;  // read of a dump; prompts come in order
  std::size_t rows = 512;
  std::size_t text_bytes = 20'000;  // per response; longer ones lose their middle
};

// {"rows": [{"prompt_id", "sample", "text", "reward", "reason", "truncated", "tokens",
// "context_source"}], "whole": false if limits dropped rows}. Empty if there is no dump.
Json read_samples(const Folder& run, std::int64_t step, const SampleLimits& limits = {});

}  // namespace antisd::inline report
