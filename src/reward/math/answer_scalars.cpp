// Single values: percentages and units, exact and approximate numbers, expressions.
#include <cmath>

#include "reward/math/answer_compare.h"
#include "reward/math/latex_names.h"
#include "reward/math/normal_form.h"

namespace antisd::inline reward::math {
namespace {

// A value without its unit.
struct Quantity {
  Expression value;
  std::string unit;
  bool percent = false, degrees = false;
};

Quantity peel(Arena& arena, Expression e) {
  Quantity result{e};
  bool negative = false;
  while (true) {
    if (result.value->op == Op::kUnit)
      result.unit = result.value->name;
    else if (result.value->op == Op::kPercent)
      result.percent = true;
    else if (result.value->op == Op::kNegate) {
      const Op inner = result.value->args[0]->op;
      if (inner != Op::kUnit && inner != Op::kPercent && inner != Op::kDegree) break;
      negative = !negative;
    } else if (result.value->op == Op::kDegree) {
      result.degrees = true;
    } else {
      break;
    }
    result.value = result.value->args[0];
  }
  if (negative) result.value = arena.make(Op::kNegate, {result.value});
  return result;
}

// The factor from one known unit to the other; 0 if they measure different things; nothing if one
// is unknown.
std::optional<Rational> unit_factor(std::string_view from, std::string_view to) {
  const auto split = [](std::string_view unit) {
    const std::size_t caret = unit.find('^');
    return std::pair(unit.substr(0, caret), caret == std::string_view::npos
                                                ? std::string_view("1")
                                                : unit.substr(caret + 1));
  };
  const auto [name_a, power_a] = split(from);
  const auto [name_b, power_b] = split(to);
  const Unit a = find_unit(name_a), b = find_unit(name_b);
  if (a.base.empty() || b.base.empty()) return std::nullopt;
  if (a.base != b.base || power_a != power_b) return Rational(0);
  if (power_a.size() != 1 || power_a[0] < '0' || power_a[0] > '9') return std::nullopt;
  // Scales are powers of ten or integers: exact as ratios of thousandths.
  const Rational ratio =
      Rational(std::lround(a.scale * 1000)) / Rational(std::lround(b.scale * 1000));
  return ratio.power(power_a[0] - '0');
}

// 4343_6 against 4343: the base may be omitted if the problem asks for it.
bool same_digits(Expression a, Expression b) {
  if (a->op != Op::kCall || a->name != "based") std::swap(a, b);
  return a->op == Op::kCall && a->name == "based" && b->op == Op::kNumber &&
         a->args[1]->op == Op::kNumber && a->args[1]->value == b->value;
}

bool has_plain_log(Expression e) {
  return any_node(e, [](Expression node) {
    return node->op == Op::kCall && node->name == "log" && node->args.size() == 1;
  });
}

Expression bare(Expression e) {
  while (e->op == Op::kNegate)
    e = e->args[0];
  return e;
}

bool terminates(const Rational& value) {  // has a finite decimal expansion
  Rational left = value.denominator();
  for (const long prime : {2L, 5L})
    while ((left / Rational(prime)).is_integer())
      left = left / Rational(prime);
  return left == Rational(1);
}

}  // namespace

Comparison AnswerComparer::compare_quantities(Expression a, Expression b) {
  const Quantity left = peel(arena_, a), right = peel(arena_, b);
  if (!left.unit.empty() && !right.unit.empty() && left.unit != right.unit) {
    if (const auto factor = unit_factor(left.unit, right.unit)) {
      if (factor->sign() == 0) return Comparison::kDifferent;
      return compare_scalars(arena_.make(Op::kMultiply, {left.value, arena_.number(*factor)}),
                             right.value);
    }
  }
  if (same_digits(left.value, right.value)) return Comparison::kEqual;
  const Comparison plain = compare_scalars(left.value, right.value);
  if (plain == Comparison::kEqual) return plain;
  // 60 degrees against pi/3.
  const auto radians = [](const Quantity& q) {
    return !q.degrees && any_node(q.value, [](Expression e) { return is_symbol(e, "pi"); });
  };
  if ((left.degrees && radians(right)) || (right.degrees && radians(left))) {
    const auto angle = [&](const Quantity& q) {
      if (!q.degrees) return q.value;
      return arena_.make(Op::kDivide, {arena_.make(Op::kMultiply, {q.value, arena_.symbol("pi")}),
                                       arena_.number(180)});
    };
    return compare_scalars(angle(left), angle(right));
  }
  if (left.percent == right.percent) return plain;
  const auto hundredth = [&](const Quantity& q) {
    if (!q.percent) return q.value;
    if (q.value->op == Op::kNumber && q.value->decimals >= 0)  // with two more decimals
      return arena_.number(q.value->value / Rational(100), q.value->decimals + 2);
    return arena_.make(Op::kDivide, {q.value, arena_.number(100)});
  };
  return compare_scalars(hundredth(left), hundredth(right));
}

Comparison AnswerComparer::compare_scalars(Expression a, Expression b) {
  if (a->op == Op::kNumber && b->op == Op::kNumber && relative_tolerance_ == 0)
    return a->value == b->value                       ? Comparison::kEqual
           : approximates(a, b) || approximates(b, a) ? Comparison::kEqual
                                                      : Comparison::kDifferent;
  if (same_tree(a, b)) return Comparison::kEqual;
  const auto defined = [&](Expression e) -> std::optional<std::optional<Rational>> {
    try {
      return exact_value(e, budget_);
    } catch (const Undefined&) {
      return std::nullopt;
    }
  };
  const auto exact_a = defined(a), exact_b = defined(b);
  if (!exact_a || !exact_b)
    return exact_a || exact_b ? Comparison::kDifferent : Comparison::kUnknown;
  if (*exact_a && *exact_b) {
    if (**exact_a == **exact_b) return Comparison::kEqual;
    if (approximates(a, b) || approximates(b, a)) return Comparison::kEqual;
    if (relative_tolerance_ == 0) return Comparison::kDifferent;
  }
  if (relative_tolerance_ > 0 && variables(a).empty() && variables(b).empty())
    return is_close(a, b) ? Comparison::kEqual : Comparison::kDifferent;
  if (approximates(a, b) || approximates(b, a)) return Comparison::kEqual;
  Normalizer normalizer(budget_);
  const auto form_a = normalizer.normalize(a), form_b = normalizer.normalize(b);
  if (form_a && form_b) {
    const Comparison forms = normalizer.compare(*form_a, *form_b);
    if (forms != Comparison::kUnknown) return forms;
  }
  Comparison result = compare_values(a, b, budget_);
  if (result != Comparison::kEqual && (has_plain_log(a) || has_plain_log(b)))
    result = compare_values(a, b, budget_, /*log_base_ten=*/true);
  return result;
}

// Within the stated tolerance of the gold answer.
bool AnswerComparer::is_close(Expression gold, Expression found) try {
  Evaluator left({0}, budget_), right({0}, budget_);
  const Complex x = left.evaluate(gold), gap = x - right.evaluate(found);
  // Slightly more, so that the stated bound itself is included.
  return gap.log2() <= x.log2() + std::log2(relative_tolerance_) + 1e-9;
} catch (const Undefined&) {
  return false;
}

bool AnswerComparer::approximates(Expression decimal, Expression exact) try {
  Expression literal = bare(decimal);
  if (literal->op != Op::kNumber || literal->decimals < 6 || literal->decimals > 60) return false;
  if (bare(exact)->op == Op::kNumber && bare(exact)->decimals >= 0) return false;
  if (!variables(exact).empty()) return false;
  const auto value = exact_value(exact, budget_);
  if (value && terminates(*value)) return false;
  if (literal->value < Rational(1) / Rational(1000)) return false;  // too few digits to tell
  const Rational unit = Rational(10).power(-literal->decimals);
  const Rational written = decimal->op == Op::kNegate ? -literal->value : literal->value;
  // Rounded: within half a unit; truncated: within one unit, towards zero.
  Evaluator evaluator({0}, budget_);
  const Complex z = evaluator.evaluate(exact);
  if (!z.is_real()) return false;
  const Real gap = z.re - Real::from(written);
  if (!(Real::from(unit / Rational(2)) < gap.absolute())) return true;
  return gap.absolute() < Real::from(unit) && (gap.sign() == z.re.sign());
} catch (const Undefined&) {
  return false;  // an undefined value has no approximation
}

}  // namespace antisd::inline reward::math
