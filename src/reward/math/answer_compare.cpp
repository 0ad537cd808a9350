#include "reward/math/answer_compare.h"

#include <algorithm>

#include "reward/math/answer_set.h"

namespace antisd::inline reward::math {
namespace {

bool is_collection(Expression e) {
  return e->op == Op::kList || e->op == Op::kSet || e->op == Op::kTuple;
}

// "seven", "twenty-five"
std::optional<long> number_word(std::string_view word) {
  static constexpr std::string_view kWords[] = {
      "zero",     "one",     "two",     "three",     "four",     "five",    "six",
      "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",  "thirteen",
      "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
  static constexpr std::string_view kTens[] = {"twenty", "thirty",  "forty",  "fifty",
                                               "sixty",  "seventy", "eighty", "ninety"};
  for (std::size_t k = 0; k < std::size(kWords); ++k)
    if (word == kWords[k]) return static_cast<long>(k);
  for (std::size_t k = 0; k < std::size(kTens); ++k) {
    if (!word.starts_with(kTens[k])) continue;
    const long tens = 10 * static_cast<long>(k) + 20;
    word.remove_prefix(kTens[k].size());
    if (word.empty()) return tens;
    if (word[0] != '-' && word[0] != ' ') return std::nullopt;
    const std::optional<long> ones = number_word(word.substr(1));
    return ones && *ones >= 1 && *ones <= 9 ? std::optional(tens + *ones) : std::nullopt;
  }
  return std::nullopt;
}

// A relation is compared as a relation, or as the value it assigns.
bool is_set_like(Expression e) {
  return is_surely_set(e) || e->op == Op::kSet || e->op == Op::kTuple;
}

}  // namespace

Comparison AnswerComparer::compare(Expression a, Expression b) {
  budget_.spend(2);
  if (a == b) return Comparison::kEqual;
  struct Depth {
    explicit Depth(int& depth) : depth(depth) {
      if (++depth > 100) throw BudgetExceeded("answers are nested too deeply");
    }
    ~Depth() { --depth; }
    int& depth;
  } const guard(depth_);

  // A plus-minus is the list of its two values.
  const auto expand = [&](Expression e) {
    const bool holder = is_collection(e) || e->op == Op::kMatrix || e->op == Op::kUnion;
    if (holder || !contains(e, Op::kPlusMinus)) return e;
    return arena_.make(Op::kList, {with_sign(arena_, e, 1), with_sign(arena_, e, -1)});
  };
  a = expand(a);
  b = expand(b);

  a = without_words(a, b);
  b = without_words(b, a);
  if ((is_surely_set(a) && is_set_like(b)) || (is_surely_set(b) && is_set_like(a))) {
    const auto set_a = to_real_set(without_bars(arena_, a), budget_),
               set_b = to_real_set(without_bars(arena_, b), budget_);
    if (set_a && set_b)
      return equal_sets(*set_a, *set_b, budget_) ? Comparison::kEqual : Comparison::kDifferent;
  }
  if (a->op == Op::kRelation || b->op == Op::kRelation) return compare_relations(a, b);
  a = as_matrix(a);
  b = as_matrix(b);
  if (a->op == Op::kMatrix || b->op == Op::kMatrix) return compare_matrices(a, b);
  if (is_collection(a) || is_collection(b)) return compare_collections(a, b);
  if (a->op == Op::kRatio && b->op == Op::kRatio) return compare_ratios(a, b);
  if (a->op == b->op && (a->op == Op::kUnion || a->op == Op::kIntersect))
    return compare_unordered(a->args, b->args, false);
  if (a->op == Op::kWord && b->op == Op::kWord)
    return a->name == b->name ? Comparison::kEqual : Comparison::kDifferent;
  if (a->op == Op::kWord || b->op == Op::kWord) {
    const std::optional<long> named = number_word((a->op == Op::kWord ? a : b)->name);
    return named ? compare_quantities(arena_.number(*named), a->op == Op::kWord ? b : a)
                 : Comparison::kDifferent;
  }
  return compare_quantities(a, b);
}

// "The answer is 5" against 5: words before a value are ignored if the other side has none.
Expression AnswerComparer::without_words(Expression e, Expression other) {
  const bool joined =
      e->op == Op::kMultiply || e->op == Op::kAdd;  // "the sum is -5" looks like one
  if (!joined || e->args[0]->op != Op::kWord || contains(other, Op::kWord)) return e;
  std::vector<Expression> rest(e->args.begin() + 1, e->args.end());
  return rest.size() == 1 ? rest[0] : arena_.make(e->op, std::move(rest));
}

AnswerComparer::Items AnswerComparer::items_of(Expression e) {
  if (!is_collection(e)) return {e};
  Items items;
  for (Expression item : e->args) {
    // "1, \pm 2" has three values.
    if (e->op != Op::kTuple && !is_collection(item) && contains(item, Op::kPlusMinus)) {
      items.push_back(with_sign(arena_, item, 1));
      items.push_back(with_sign(arena_, item, -1));
    } else {
      items.push_back(item);
    }
  }
  return items;
}

Comparison AnswerComparer::compare_collections(Expression a, Expression b) {
  const Items left = items_of(a), right = items_of(b);
  if (a->op == Op::kTuple && b->op == Op::kTuple && a->args.size() == 2 && b->args.size() == 2 &&
      ((a->open == '[') != (b->open == '[') || (a->close == ']') != (b->close == ']')))
    return Comparison::kDifferent;
  if (a->op == Op::kTuple || b->op == Op::kTuple) {
    // "(1, 2), (3, 4)" against a single pair
    if (!is_collection(a) || !is_collection(b)) return Comparison::kDifferent;
    return compare_ordered(left, right);
  }
  return compare_unordered(left, right, /*drop_repeats=*/true);
}

Comparison AnswerComparer::compare_ordered(const Items& a, const Items& b) {
  if (a.size() != b.size()) return Comparison::kDifferent;
  Comparison result = Comparison::kEqual;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const Comparison item = compare(a[k], b[k]);
    if (item == Comparison::kDifferent) return item;
    if (item == Comparison::kUnknown) result = item;
  }
  return result;
}

AnswerComparer::Items AnswerComparer::without_repeats(Items items) {
  Items kept;
  for (Expression item : items) {
    const bool known = std::any_of(kept.begin(), kept.end(), [&](Expression other) {
      return compare(item, other) == Comparison::kEqual;
    });
    if (!known) kept.push_back(item);
  }
  return kept;
}

Comparison AnswerComparer::compare_unordered(Items a, Items b, bool drop_repeats) {
  if (drop_repeats && a.size() != b.size()) {
    a = without_repeats(std::move(a));
    b = without_repeats(std::move(b));
  }
  if (a.size() != b.size()) return Comparison::kDifferent;
  // Equality is transitive, so the first matching partner is as good as any.
  bool unknown = false;
  for (Expression item : a) {
    const auto partner = std::find_if(b.begin(), b.end(), [&](Expression other) {
      const Comparison result = compare(item, other);
      unknown |= result == Comparison::kUnknown;
      return result == Comparison::kEqual;
    });
    if (partner == b.end()) return unknown ? Comparison::kUnknown : Comparison::kDifferent;
    b.erase(partner);
  }
  return Comparison::kEqual;
}

Comparison AnswerComparer::compare_ratios(Expression a, Expression b) {
  if (a->args.size() != b->args.size()) return Comparison::kDifferent;
  // Zero has no ratio: 10:00 is a time.
  const auto zero = [](Expression e) { return e->op == Op::kNumber && e->value.sign() == 0; };
  if (std::any_of(a->args.begin(), a->args.end(), zero) ||
      std::any_of(b->args.begin(), b->args.end(), zero))
    return compare_ordered(a->args, b->args);
  Comparison result = Comparison::kEqual;
  for (std::size_t k = 1; k < a->args.size(); ++k) {
    const Comparison item = compare_scalars(arena_.make(Op::kMultiply, {a->args[0], b->args[k]}),
                                            arena_.make(Op::kMultiply, {b->args[0], a->args[k]}));
    if (item == Comparison::kDifferent) return item;
    if (item == Comparison::kUnknown) result = item;
  }
  return result;
}

}  // namespace antisd::inline reward::math
