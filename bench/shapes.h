// Model shapes by name, for benchmarks with random weights.
#pragma once

#include <string>

#include "model/model_shape.h"

namespace antisd::bench {

// qwen3-0.6b, qwen3-4b, qwen3-8b, qwen3-30b-a3b, olmo3-7b, tiny (4 layers, width 192). InputError
// for any other.
ModelShape named_shape(const std::string& name);

}  // namespace antisd::bench
