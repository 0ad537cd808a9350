// Responses of a step out of rollouts/step-NNNNNN.jsonl, without the numbers of each token.
#pragma once

#include <cstdint>

#include "io/json.h"
#include "report/folder.h"

namespace antisd::inline report {

struct SampleLimits {
  std::int64_t file_bytes = 64 << 20;  // of a dump are looked at; prompts come in order
  std::size_t rows = 512;
  std::size_t text_bytes = 20'000;  // of a response; the middle of a longer one is left out
};

// {"rows": [{"prompt_id", "sample", "text", "reward", "reason", "truncated", "tokens",
// "context_source"}], "whole": false where limits left rows out}. Empty where there is no dump.
Json read_samples(const Folder& run, std::int64_t step, const SampleLimits& limits = {});

}  // namespace antisd::inline report
