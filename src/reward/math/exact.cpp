// Exact values and comparison of values; see evaluate.h.
#include <cmath>
#include <utility>

#include "reward/math/evaluate.h"

namespace antisd::inline reward::math {
namespace {

std::optional<Rational> exact_power(const Rational& base, const Rational& exponent) {
  if (base.sign() == 0) {
    if (exponent.sign() > 0) return Rational(0);
    if (exponent.sign() == 0) return Rational(1);
    throw Undefined("zero to a negative power");
  }
  const std::optional<long> n = exponent.numerator().to_long();
  const std::optional<long> degree = exponent.denominator().to_long();
  if (base == Rational(1)) return base;
  if (!n || !degree || std::abs(*n) > 1'000'000'000 || *degree > 1000) return std::nullopt;
  if (static_cast<double>(base.bits()) * static_cast<double>(std::abs(*n)) > kMaxNumberBits)
    return std::nullopt;
  std::optional<Rational> root = *degree == 1 ? base : base.root(*degree);
  if (!root) return std::nullopt;
  return root->power(*n);
}

std::optional<Rational> exact_call(Expression e, Budget& budget) {
  const std::string& name = e->name;
  std::vector<Rational> args;
  if (name != "factorial" && name != "binom" && name != "gcd" && name != "lcm" && name != "abs" &&
      name != "floor" && name != "ceil" && name != "based" && name != "max" && name != "min")
    return std::nullopt;
  for (Expression arg : e->args) {
    std::optional<Rational> value = exact_value(arg, budget);
    if (!value) return std::nullopt;
    args.push_back(std::move(*value));
  }
  if (args.empty()) return std::nullopt;
  if (name == "based") return args[0];
  if (name == "abs") return args[0].absolute();
  if (name == "floor") return args[0].floor();
  if (name == "ceil") return -(-args[0]).floor();
  if (name == "max" || name == "min") {
    Rational best = args[0];
    for (const Rational& value : args)
      if (name == "max" ? best < value : value < best) best = value;
    return best;
  }
  std::vector<long> integers;
  for (const Rational& value : args) {
    const std::optional<long> integer = value.to_long();
    if (!integer) return std::nullopt;
    integers.push_back(*integer);
  }
  if (name == "factorial") {
    if (integers[0] < 0) throw Undefined("factorial of a negative number");
    if (integers[0] > 8'000) return std::nullopt;
    budget.spend(static_cast<int>(integers[0]) / 4);
    return Rational::factorial(integers[0]);
  }
  if (name == "binom") {
    if (integers.size() != 2 || integers[0] < 0 || integers[1] < 0) return std::nullopt;
    budget.spend(200);
    return Rational::binomial(integers[0], integers[1]);
  }
  long result = integers[0];
  for (const long value : integers) {
    long a = std::labs(result), b = std::labs(value);
    while (b != 0)
      a = std::exchange(b, a % b);
    if (name == "gcd")
      result = a;
    else if (a == 0 || __builtin_mul_overflow(result / a, value, &result))
      return std::nullopt;
  }
  return Rational(std::labs(result));
}

std::optional<Complex> evaluate_or_nothing(Evaluator& evaluator, Expression e) {
  try {
    return evaluator.evaluate(e);
  } catch (const Undefined&) {
    return std::nullopt;
  }
}

// Zero within the precision, not zero, or too imprecise to say.
Comparison zero_or_not(const Complex& difference, double scale) {
  const double size = difference.log2();
  if (size > difference.error + 8) return Comparison::kDifferent;
  // A difference below an error that is itself small means equality.
  return difference.error < std::max(scale, -60.0) - 80 ? Comparison::kEqual : Comparison::kUnknown;
}

}  // namespace

std::optional<Rational> exact_value(Expression e, Budget& budget) {
  budget.spend();
  const auto of = [&](std::size_t k) { return exact_value(e->args[k], budget); };
  switch (e->op) {
    case Op::kNumber:
      return e->value;
    case Op::kNegate: {
      const auto value = of(0);
      return value ? std::optional(-*value) : std::nullopt;
    }
    case Op::kAdd:
    case Op::kMultiply: {
      auto total = of(0);
      for (std::size_t k = 1; total && k < e->args.size(); ++k) {
        const auto value = of(k);
        if (!value) return std::nullopt;
        total = e->op == Op::kAdd ? *total + *value : *total * *value;
        budget.spend(static_cast<int>(total->bits() / 400));
      }
      return total;
    }
    case Op::kDivide:
    case Op::kRatio: {
      if (e->args.size() != 2) return std::nullopt;
      const auto above = of(0);
      if (!above) return std::nullopt;
      const auto below = of(1);
      if (!below) return std::nullopt;
      if (below->sign() == 0) throw Undefined("division by zero");
      return *above / *below;
    }
    case Op::kPower: {
      const auto base = of(0);
      if (!base) return std::nullopt;
      const auto exponent = of(1);
      if (!exponent) return std::nullopt;
      budget.spend(20);
      return exact_power(*base, *exponent);
    }
    case Op::kPercent: {
      const auto value = of(0);
      return value ? std::optional(*value / Rational(100)) : std::nullopt;
    }
    case Op::kDegree:
    case Op::kUnit:
      return of(0);
    case Op::kCall:
      return exact_call(e, budget);
    default:
      return std::nullopt;
  }
}

Comparison compare_values(Expression a, Expression b, Budget& budget, bool log_base_ten) {
  const bool constant = variables(a).empty() && variables(b).empty();
  const auto combinatorial = [](Expression node) {
    return node->op == Op::kCall && (node->name == "factorial" || node->name == "binom");
  };
  const bool integers = !constant && (any_node(a, combinatorial) || any_node(b, combinatorial));
  int equal = 0, one_sided = 0;
  for (int index = 0; index < kPoints && equal < 4; ++index) {
    const Point point{index, log_base_ten, integers};
    Evaluator left(point, budget), right(point, budget);
    const std::optional<Complex> x = evaluate_or_nothing(left, a),
                                 y = evaluate_or_nothing(right, b);
    if (x && y) {
      if (index >= 2 && (left.left_reals() || right.left_reals())) continue;
      const Comparison result = zero_or_not(*x - *y, std::max(x->log2(), y->log2()));
      if (result == Comparison::kDifferent) return result;
      equal += result == Comparison::kEqual;
    } else {
      one_sided += x || y;
    }
    if (constant) break;
  }
  if (equal > 0) return Comparison::kEqual;
  // A value that exists nowhere differs from one that exists.
  return one_sided > 0 ? Comparison::kDifferent : Comparison::kUnknown;
}

Comparison compare_proportional(Expression a, Expression b, bool positive, Budget& budget) {
  std::optional<Complex> ratio;
  int agreed = 0;
  for (int index = 0; index < kPoints && agreed < 4; ++index) {
    Evaluator left({index}, budget), right({index}, budget);
    try {
      const Complex x = left.evaluate(a), y = right.evaluate(b);
      if (x.is_zero() && y.is_zero()) continue;
      if (x.is_zero() || y.is_zero()) return Comparison::kDifferent;
      const Complex here = x / y;
      if (positive && !(here.is_real() && here.re.sign() > 0)) return Comparison::kDifferent;
      if (ratio && zero_or_not(here - *ratio, here.log2()) != Comparison::kEqual)
        return Comparison::kDifferent;
      ratio = here;
      ++agreed;
    } catch (const Undefined&) {
      continue;
    }
  }
  return agreed >= 3 ? Comparison::kEqual : Comparison::kUnknown;
}

int compare_order(Expression a, Expression b, Budget& budget) {
  const auto exact_a = exact_value(a, budget), exact_b = exact_value(b, budget);
  if (exact_a && exact_b) return *exact_a == *exact_b ? 0 : *exact_a < *exact_b ? -1 : 1;
  Evaluator left({0}, budget), right({0}, budget);
  const Complex difference = left.evaluate(a) - right.evaluate(b);
  if (!difference.is_real()) return -2;
  if (difference.is_zero()) return 0;
  return difference.re.sign();
}

}  // namespace antisd::inline reward::math
