// Any two texts are graded, in bounded time, and raw equality is symmetric. The input is split at
// its first line end into answer and response.
//
//   clang++ -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -Isrc fuzz/fuzz_math_grader.cpp
//     src/reward/{math,latex,answer,expression}*.cpp src/core/{utf8,error}.cpp -lgmp -lfmt (without
//     *_test.cpp)
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "reward/math/grader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t split = text.find('\n');
  const std::string_view answer = text.substr(0, split);
  const std::string_view response = split == text.npos ? answer : text.substr(split + 1);

  const antisd::Verdict grade = antisd::grade_math(answer, response, {.last_number = true});
  if (grade.failed() && grade.reason.empty()) std::abort();

  const antisd::MathGraderOptions raw{.raw = true, .identical_shortcut = false};
  const antisd::Verdict forward = antisd::grade_math(answer, response, raw);
  const antisd::Verdict backward = antisd::grade_math(response, answer, raw);
  // What runs out of budget may do so on one side only; right against wrong is a fault. An empty
  // answer is wrong as a response and undecidable as gold.
  const bool clash = (forward.correct() && backward.reward == 0.0) ||
                     (forward.reward == 0.0 && backward.correct());
  if (clash) std::abort();
  return 0;
}
