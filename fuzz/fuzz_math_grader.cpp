// Any two texts are graded, in bounded time, and raw equality is symmetric. The input is split at
// its first newline into answer and response.
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
  // The budget may run out on one side only; right on one side and wrong on the other is a bug. An
  // empty answer is wrong as a response and undecidable as gold.
  const bool clash = (forward.correct() && backward.reward == 0.0) ||
                     (forward.reward == 0.0 && backward.correct());
  if (clash) std::abort();
  return 0;
}
