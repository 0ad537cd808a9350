// A check for numeric options: CLI11's range checks accept NaN, since it is neither too small nor
// too large.
//
//   app.add_option("--temperature", temperature)
//       ->check(CLI::PositiveNumber)
//       ->check(finite_number());
#pragma once

#include <cmath>
#include <string>

#include <CLI/CLI.hpp>

namespace antisd::inline cli {

inline CLI::Validator finite_number() {
  return CLI::Validator(
      [](std::string& text) {
        double value = 0;
        const bool finite = CLI::detail::lexical_cast(text, value) && std::isfinite(value);
        return finite ? std::string() : text + " is not a finite number";
      },
      "");
}

}  // namespace antisd::inline cli
