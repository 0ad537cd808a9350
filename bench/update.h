#pragma once

#include <string>
#include <vector>

namespace antisd::bench {

// --shape NAME [--device cpu|cuda] [--sequences 8] [--length 2048] [--checkpoint] [--repeats 5]:
// time of forward, backward and AdamW over packed sequences, by part; tokens a second and, on an
// H200, the share of 989 TFLOP/s that 6 N D makes of it.
int run_update(const std::vector<std::string>& arguments);

}  // namespace antisd::bench
