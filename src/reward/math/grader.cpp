#include "reward/math/grader.h"

#include <algorithm>

#include "reward/math/answer_compare.h"
#include "reward/math/answer_extract.h"
#include "reward/math/answer_text.h"
#include "reward/math/characters.h"
#include "reward/math/latex_parser.h"
#include "reward/visible_text.h"

namespace antisd::inline reward {
namespace {

using namespace math;

std::optional<std::string> find_answer(std::string_view response,
                                       const MathGraderOptions& options) {
  const std::string visible = visible_text(response);
  const std::string_view text = without_next_turn(visible);
  std::optional<std::string> answer;
  if (options.raw)
    answer = bare_answer(text);
  else if (!(answer = last_box(text)) && !(answer = stated_answer(text)) && options.last_number)
    answer = last_number(text);
  if (!answer || answer->empty()) return std::nullopt;
  return with_single_backslashes(*answer);
}

std::string without_blanks(std::string_view text) {
  std::string result(text);
  std::erase_if(result, [](char c) { return c == ' ' || c == '\n' || c == '\t'; });
  return result;
}

// One way to read the commas of an answer.
struct Reading {
  std::string text;
  LexerOptions options;
};

// Null if the text is not an expression.
Expression parse_or_null(Arena& arena, const Reading& reading, Budget& budget) {
  try {
    return parse_expression(arena, reading.text, budget, reading.options);
  } catch (const ParseError&) {
    return nullptr;
  }
}

// "1,5" with its comma as a decimal point, if it cannot separate groups of three digits: "0,125"
// and "1250,75" but not "1,250". Empty if the answer is not such a number.
std::string with_decimal_point(std::string_view text) {
  const std::size_t comma = text.find(',');
  if (comma == text.npos || text.find_first_of(",()[]{};.", comma + 1) != text.npos) return {};
  const auto digit = [&](std::size_t k) {
    return k < text.size() && text[k] >= '0' && text[k] <= '9';
  };
  std::size_t first = comma, end = comma + 1;
  while (first > 0 && digit(first - 1))
    --first;
  while (digit(end))
    ++end;
  if (first == comma || end == comma + 1) return {};
  const std::string_view whole = text.substr(first, comma - first);
  if (end - comma - 1 == 3 && whole.size() <= 3 && whole != "0") return {};
  if (text.substr(0, first).find_first_not_of(" -+$\\") != text.npos) return {};
  std::string point(text);
  point[comma] = '.';
  return point;
}

// "1,000" may be a number or a list of two.
bool has_grouped_digits(std::string_view text) {
  if (text.find(",\\!") != text.npos) return true;
  for (std::size_t at = 1; at + 3 < text.size(); ++at) {
    const auto digit = [&](std::size_t k) { return text[k] >= '0' && text[k] <= '9'; };
    if ((text[at] == ',' || text[at] == ' ') && digit(at - 1) && digit(at + 1) && digit(at + 2) &&
        digit(at + 3))
      return true;
  }
  return false;
}

std::vector<Reading> readings(std::string_view text) {
  std::vector<Reading> all = {{std::string(text), {.group_digits = true}}};
  if (has_grouped_digits(text)) all.push_back({std::string(text), {.group_digits = false}});
  if (std::string decimal = with_decimal_point(text); !decimal.empty())
    all.push_back({std::move(decimal), {.group_digits = true}});
  return all;
}

// Only letters, at least three: a word rather than a product of variables, so case is ignored.
bool is_word_key(std::string_view key) {
  return key.size() >= 3 &&
         std::all_of(key.begin(), key.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

Comparison compare_texts(std::string_view gold, std::string_view found,
                         const MathGraderOptions& options, Budget& budget) {
  if (std::max(gold.size(), found.size()) > kMaxAnswerBytes)
    throw BudgetExceeded("the answer is too long to parse");
  Comparison result = Comparison::kDifferent;
  bool words = false;
  const std::vector<Reading> gold_readings = readings(gold), found_readings = readings(found);
  for (const Reading& gold_reading : gold_readings)
    for (const Reading& found_reading : found_readings) {
      Arena arena;
      Expression a = parse_or_null(arena, gold_reading, budget);
      Expression b = parse_or_null(arena, found_reading, budget);
      words |= a == nullptr || b == nullptr || contains(a, Op::kWord) || contains(b, Op::kWord);
      if (a == nullptr || b == nullptr) continue;
      Comparison here = Comparison::kUnknown;
      try {
        here = AnswerComparer(arena, budget, options.relative_tolerance).compare(a, b);
      } catch (const Undefined&) {
      }
      if (here == Comparison::kEqual) return here;
      if (here == Comparison::kUnknown) result = here;
    }
  // Text that is not mathematics, or mathematics without a value, equals itself.
  const std::string key = text_key(gold);
  if (key == text_key(found) && (words || result == Comparison::kUnknown || is_word_key(key)))
    return Comparison::kEqual;
  return result;
}

}  // namespace

Verdict grade_math(std::string_view answer, std::string_view response,
                   const MathGraderOptions& options) {
  Verdict verdict;
  try {
    Budget budget(std::clamp(options.budget_ms, 1, 60'000));
    const std::optional<std::string> known = find_answer(answer, {.raw = true});
    const std::optional<std::string> found = find_answer(response, options);
    if (!found) return wrong_verdict("", "no answer found");
    verdict.extracted = *found;
    if (!known) {
      verdict.reason = "the gold answer is empty";
      return verdict;
    }
    const std::string& gold = *known;
    if (options.identical_shortcut && without_blanks(gold) == without_blanks(*found)) {
      verdict.reward = 1.0;
      return verdict;
    }
    // A single letter may be a choice in either case: "c" for "C".
    if (gold.size() == 1 && found->size() == 1 && lower(gold[0]) == lower((*found)[0]) &&
        lower(gold[0]) >= 'a' && lower(gold[0]) <= 'e') {
      verdict.reward = 1.0;
      return verdict;
    }
    if (choice_letter(gold, /*strict=*/true) || choice_letter(*found, /*strict=*/true)) {
      const auto right = choice_letter(gold, /*strict=*/false),
                 chosen = choice_letter(*found, /*strict=*/false);
      if (right && chosen) {
        verdict.reward = *right == *chosen ? 1.0 : 0.0;
        return verdict;
      }
    }
    const std::string_view value =
        gold.starts_with("(") ? std::string_view(*found) : without_choice_letter(*found);
    if (const auto right = leading_verdict(gold), said = leading_verdict(*found); right && said) {
      verdict.reward = *right == *said ? 1.0 : 0.0;
      return verdict;
    }
    switch (compare_texts(gold, value, options, budget)) {
      case Comparison::kEqual:
        verdict.reward = 1.0;
        break;
      case Comparison::kDifferent:
        verdict.reward = 0.0;
        break;
      case Comparison::kUnknown:
        verdict.reason = "the values cannot be compared";
        break;
    }
  } catch (const BudgetExceeded& exceeded) {
    verdict.reward.reset();
    verdict.reason = exceeded.what();
  }
  return verdict;
}

}  // namespace antisd::inline reward
