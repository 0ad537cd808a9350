// Layouts of packed sequences for the checks of attention.
#pragma once

#include "ops/attention.h"

namespace antisd::inline ops {

struct TestLayout {
  AttentionLayout layout;              // offsets on the host
  std::vector<std::int64_t> key_rows;  // of every key
  std::int64_t tokens = 0;
  bool shared = false;

  AttentionLayout on(at::Device device) const;
};

// Sequences of these lengths; with a prefix, each begins with the same rows, which are read again.
TestLayout test_layout(const std::vector<std::int32_t>& lengths, std::int32_t prefix = 0);

}  // namespace antisd::inline ops
