// Numbers as people write them: separators between groups of three digits, decimals, exponents.
//
//   scan_number_text("1,\\!000.5 cm", 0, true, 13).digits;  // "1000.5"
#pragma once

#include <string>
#include <string_view>

namespace antisd::inline reward::math {

struct ScannedNumber {
  std::string digits;  // without separators: "1000.5", "3.83e35"
  std::size_t end;     // after the number
};

// The number at text[at], a digit or a point before one. With `group_digits`, a comma or space
// joins groups of three; a LaTeX space always does. `answer_size` is the length of the whole
// answer: "2e-1" is 0.2 if it is the whole answer, and Euler's number minus one in a sum.
ScannedNumber scan_number_text(std::string_view text, std::size_t at, bool group_digits,
                               std::size_t answer_size);

}  // namespace antisd::inline reward::math
