#include "reward/math_grader.h"

#include <algorithm>

#include "reward/answer_compare.h"
#include "reward/answer_extract.h"
#include "reward/answer_text.h"
#include "reward/latex_parser.h"

namespace antisd {
namespace {

using namespace math;

std::optional<std::string> find_answer(std::string_view response,
                                       const MathGraderOptions& options) {
  const bool thoughts = response.find("think>") != std::string_view::npos;
  const std::string visible = thoughts ? visible_text(response) : std::string();
  const std::string_view text = thoughts ? std::string_view(visible) : response;
  if (options.raw) {
    std::string answer = bare_answer(text);
    return answer.empty() ? std::nullopt : std::optional(std::move(answer));
  }
  if (auto box = last_box(text)) return box;
  if (auto stated = stated_answer(text)) return stated;
  return options.last_number ? last_number(text) : std::nullopt;
}

std::string without_blanks(std::string_view text) {
  std::string result(text);
  std::erase_if(result, [](char c) { return c == ' ' || c == '\n' || c == '\t'; });
  return result;
}

// Null where the text is no expression.
Expression parse_or_null(Arena& arena, std::string_view text, Budget& budget,
                         const LexerOptions& options) {
  try {
    return parse_expression(arena, text, budget, options);
  } catch (const ParseError&) {
    return nullptr;
  }
}

// "1,000" may be a number or a list of two.
bool has_grouped_digits(std::string_view text) {
  for (std::size_t at = 1; at + 3 < text.size(); ++at) {
    const auto digit = [&](std::size_t k) { return text[k] >= '0' && text[k] <= '9'; };
    if ((text[at] == ',' || text[at] == ' ') && digit(at - 1) && digit(at + 1) && digit(at + 2) &&
        digit(at + 3))
      return true;
  }
  return false;
}

// Letters alone, at least three: a word rather than a product of variables, so case does not count.
bool is_word_key(std::string_view key) {
  return key.size() >= 3 &&
         std::all_of(key.begin(), key.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

Comparison compare_texts(std::string_view gold, std::string_view found,
                         const MathGraderOptions& options, Budget& budget) {
  if (std::max(gold.size(), found.size()) > kMaxAnswerBytes)
    throw BudgetExceeded("the answer is too long to parse");
  const bool ambiguous_gold = has_grouped_digits(gold), ambiguous_found = has_grouped_digits(found);
  Comparison result = Comparison::kDifferent;
  bool words = false;
  for (const bool group_gold : {true, false}) {
    if (!group_gold && !ambiguous_gold) continue;
    for (const bool group_found : {true, false}) {
      if (!group_found && !ambiguous_found) continue;
      Arena arena;
      Expression a = parse_or_null(arena, gold, budget, {group_gold});
      Expression b = parse_or_null(arena, found, budget, {group_found});
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
  }
  // Text that is no mathematics, or mathematics without a value, equals itself.
  const std::string key = text_key(gold);
  if (key == text_key(found) && (words || result == Comparison::kUnknown || is_word_key(key)))
    return Comparison::kEqual;
  return result;
}

}  // namespace

Grade grade_math(std::string_view answer, std::string_view response,
                 const MathGraderOptions& options) {
  Grade grade;
  try {
    Budget budget(std::clamp(options.budget_ms, 1, 60'000));
    const std::optional<std::string> known = find_answer(answer, {.raw = true});
    const std::optional<std::string> found = find_answer(response, options);
    if (!found) return {Verdict::kWrong, "", "no answer found"};
    grade.extracted = *found;
    if (!known) return {Verdict::kUndecided, *found, "the gold answer is empty"};
    const std::string& gold = *known;
    if (options.identical_shortcut && without_blanks(gold) == without_blanks(*found)) {
      grade.verdict = Verdict::kCorrect;
      return grade;
    }
    // A lone letter may be a choice in either case: "c" for "C".
    if (gold.size() == 1 && found->size() == 1 &&
        std::tolower(gold[0]) == std::tolower((*found)[0]) &&
        std::string_view("abcde").find(static_cast<char>(std::tolower(gold[0]))) !=
            std::string_view::npos) {
      grade.verdict = Verdict::kCorrect;
      return grade;
    }
    if (choice_letter(gold, /*strict=*/true) || choice_letter(*found, /*strict=*/true)) {
      const auto right = choice_letter(gold, /*strict=*/false),
                 chosen = choice_letter(*found, /*strict=*/false);
      if (right && chosen) {
        grade.verdict = *right == *chosen ? Verdict::kCorrect : Verdict::kWrong;
        return grade;
      }
    }
    if (const auto right = leading_verdict(gold), said = leading_verdict(*found); right && said) {
      grade.verdict = *right == *said ? Verdict::kCorrect : Verdict::kWrong;
      return grade;
    }
    switch (compare_texts(gold, *found, options, budget)) {
      case Comparison::kEqual:
        grade.verdict = Verdict::kCorrect;
        break;
      case Comparison::kDifferent:
        grade.verdict = Verdict::kWrong;
        break;
      case Comparison::kUnknown:
        grade.reason = "the values cannot be compared";
        break;
    }
  } catch (const BudgetExceeded& exceeded) {
    grade.verdict = Verdict::kUndecided;
    grade.reason = exceeded.what();
  }
  return grade;
}

}  // namespace antisd
