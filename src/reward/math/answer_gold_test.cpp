// Real gold answers, if the shared data is beside the checkout: each must equal itself in another
// spelling, by mathematics rather than by identical text, and be decidable.
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/testing.h"
#include "io/json.h"
#include "reward/math/grader.h"

namespace antisd::inline reward {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

std::string other_fractions(std::string text) {
  replace_all(text, "\\dfrac", "\\frac");
  replace_all(text, "\\tfrac", "\\frac");
  replace_all(text, "\\frac", "\\cfrac");
  return text;
}

std::string other_blanks(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool wide = c == '+' || c == '=';
    result += wide ? std::string(" ") + c + "  " : std::string(1, c);
  }
  return result;
}

std::string other_symbols(std::string text) {
  replace_all(text, "^{\\circ}", "°");
  replace_all(text, "^\\circ", "°");
  replace_all(text, "\\pi", "π");
  replace_all(text, "\\infty", "∞");
  replace_all(text, "\\cup", "∪");
  replace_all(text, "\\cdot", "\\times");
  if (text.find("\\right.") == std::string::npos) {
    replace_all(text, "\\left", "");
    if (text.find("\\rightarrow") == std::string::npos) replace_all(text, "\\right", "");
  }
  return text;
}

// \{a, b, c\} -> \{c, b, a\}, if the elements contain no brackets.
std::string other_order(const std::string& text) {
  if (!text.starts_with("\\{") || !text.ends_with("\\}") ||
      text.find_first_of("()[]|:<>=_&\\", 2) != text.size() - 2)
    return text;
  std::string reversed, element;
  for (const char c : text.substr(2, text.size() - 4) + ",") {
    if (c != ',') {
      element += c;
      continue;
    }
    reversed = reversed.empty() ? element : element + ", " + reversed;
    element.clear();
  }
  return fmt::format("\\{{{}\\}}", reversed);
}

// (a)/(b) for plain integers without a digit before them (a mixed number would change).
std::string slashed(const std::string& text) {
  std::string result;
  std::size_t at = 0;
  while (at < text.size()) {
    const bool fraction = text.compare(at, 6, "\\frac{") == 0;
    const std::size_t middle = fraction ? text.find("}{", at) : std::string::npos;
    const std::size_t end = middle == std::string::npos ? middle : text.find('}', middle + 2);
    const bool bare =
        result.empty() || result.back() == '-' || result.back() == '(' || result.back() == ',';
    if (end == std::string::npos || !bare ||
        text.substr(at + 6, middle - at - 6).find_first_not_of("0123456789") != std::string::npos ||
        text.substr(middle + 2, end - middle - 2).find_first_not_of("0123456789") !=
            std::string::npos) {
      result += text[at++];
      continue;
    }
    result += fmt::format("({}/{})", text.substr(at + 6, middle - at - 6),
                          text.substr(middle + 2, end - middle - 2));
    at = end + 1;
  }
  return result;
}

TEST(GoldAnswers, EqualThemselvesInOtherSpellings) {
  const std::filesystem::path data = testing::shared_data("");
  ANTISD_NEEDS_SHARED(data);
  std::size_t rows = 0, faults = 0;
  for (const char* folder : {"bench", "train"})
    for (const auto& entry : std::filesystem::directory_iterator(data / folder)) {
      if (entry.path().extension() != ".jsonl") continue;
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) {
        const std::string answer = parse_json(line, entry.path().string()).value("answer", "");
        ++rows;
        bool right = true;
        for (const std::string& spelling :
             {answer, other_fractions(answer), other_blanks(answer), other_symbols(answer),
              other_order(answer), slashed(answer)}) {
          const Verdict grade = grade_math(answer, "So it is \\boxed{" + spelling + "}.",
                                           {.identical_shortcut = false});
          if (grade.correct()) continue;
          if (right && faults < 20)
            std::cout << "not correct: " << answer << "  as  " << spelling << "  " << grade.reason
                      << "\n";
          right = false;
        }
        faults += !right;
      }
    }
  std::cout << faults << " of " << rows << " rows are not decided as correct\n";
  // The limit is 0.5 %; two rows have an empty gold answer upstream.
  EXPECT_LE(faults * 1000, rows);
}

}  // namespace
}  // namespace antisd::inline reward
