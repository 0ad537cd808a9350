// Whether what a program printed is what was expected, as contest judges see it.
#pragma once

#include <string>
#include <string_view>

namespace antisd::inline reward {

// Line ends, trailing blanks and trailing empty lines do not matter, nor does the amount of blank
// space between words of a line. Numbers with a fraction or exponent may differ by 1e-6, absolute
// or relative to the expected one.
//
// "wrong answer in line 3: expected \"4\", got \"5\"", with long lines shortened; empty where the
// two are the same.
std::string describe_difference(std::string_view printed, std::string_view expected);

}  // namespace antisd::inline reward
