// Whether a program's output is the expected one, by the rules of contest judges.
#pragma once

#include <string>
#include <string_view>

namespace antisd::inline reward {

// Newline style, trailing blanks, trailing empty lines and the amount of space between words do not
// matter. Numbers with a fraction or exponent may differ by 1e-6, absolute or relative to the
// expected one.
//
// "wrong answer in line 3: expected \"4\", got \"5\"", with long lines shortened; empty if the two
// are equal.
std::string describe_difference(std::string_view printed, std::string_view expected);

}  // namespace antisd::inline reward
