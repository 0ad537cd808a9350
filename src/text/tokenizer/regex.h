// A regular expression of a tokenizer file. These are written for Oniguruma, whose classes differ
// from PCRE2's (\s, \w, \p{Han}, the Unicode version), so the pattern is translated first; an
// unknown construct, or one with another meaning in PCRE2, is rejected by name.
//
//   const Regex digits(R"(\p{N}{1,3})", "tokenizer.json");
//   digits.for_each_match(text, [](std::size_t begin, std::size_t end) { ... });
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace antisd::inline text {

// The equivalent pattern for PCRE2 with UTF and UCP. Throws InputError with `where`.
std::string translate_regex(std::string_view pattern, const std::string& where);
std::string escape_regex(std::string_view literal);

class Regex {
 public:
  Regex(std::string_view pattern, const std::string& where);

  // Leftmost, non-overlapping matches from left to right. `text` must be valid UTF-8. Throws
  // InputError if a pattern backtracks too much. Thread-safe.
  void for_each_match(std::string_view text,
                      const std::function<void(std::size_t, std::size_t)>& visit) const;
  std::string replace_all(std::string_view text, std::string_view content) const;

 private:
  struct Code;
  std::shared_ptr<const Code> code_;
  std::string pattern_;
  std::string where_;
};

}  // namespace antisd::inline text
