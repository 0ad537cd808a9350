#include "reward/math/evaluate.h"

#include <cmath>

namespace antisd::inline reward::math {
namespace {

std::uint64_t mix(std::uint64_t x) {  // splitmix64's finaliser
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

std::uint64_t hash_text(std::string_view text, std::uint64_t seed) {
  for (const char c : text)
    seed = mix(seed ^ static_cast<unsigned char>(c));
  return mix(seed);
}

// The leading bits of a value, far fewer than are known. The tiny bias keeps exact values and their
// rounded equivalents on the same side of a step.
std::uint64_t hash_value(const Complex& z, std::uint64_t seed) {
  for (const Real* part : {&z.re, &z.im}) {
    if (part->log2() <= z.error + 40) {
      seed = mix(seed);
      continue;
    }
    const Real biased = *part + *part * Real(0x1.9p-60);
    long exponent = 0;
    const double mantissa = mpf_get_d_2exp(&exponent, biased.get());
    seed =
        mix(seed ^ static_cast<std::uint64_t>(static_cast<std::int64_t>(std::ldexp(mantissa, 50))) ^
            (static_cast<std::uint64_t>(exponent) << 52));
  }
  return seed;
}

Complex in_range(std::uint64_t hash, long low, long high) {
  const Rational fraction = Rational(static_cast<long>(hash >> 24)) / Rational(1L << 40);
  return Complex::from(Rational(low) + fraction * Rational(high - low));
}

bool is_trigonometric(std::string_view name) {
  return name == "sin" || name == "cos" || name == "tan" || name == "cot" || name == "sec" ||
         name == "csc";
}

bool is_hyperbolic(std::string_view name) {
  return name == "sinh" || name == "cosh" || name == "tanh" || name == "coth" || name == "sech" ||
         name == "csch";
}

}  // namespace

Complex Evaluator::variable(const std::string& name) {
  const std::uint64_t hash = hash_text(name, 1000 + point_.index);
  if (point_.integers) return Complex::from(static_cast<long>(2 + point_.index + hash % 12));
  switch (point_.index) {
    case 0:
      return in_range(hash, 0, 2);
    case 1:
      return in_range(hash, 1, 9);
    case 2:
      return in_range(hash, -3, 3);
    case 3:
      return in_range(hash, -1, 1);
    case 4:
      return in_range(hash, -8, 0);
    default:
      return in_range(hash, 0, 40);
  }
}

Complex Evaluator::evaluate(Expression e) {
  budget_.spend(2);
  switch (e->op) {
    case Op::kNumber:
      return Complex::from(e->value);
    case Op::kSymbol:
      if (e->name == "pi") return Complex::from_real(real_pi());
      if (e->name == "e") return complex_exp(Complex::from(1));
      if (e->name == "i") return {Real(), Real(1), kRounding};
      return variable(e->name);
    case Op::kWord:
      return variable(e->name);
    case Op::kAdd: {
      Complex sum = evaluate(e->args[0]);
      for (std::size_t k = 1; k < e->args.size(); ++k)
        sum = sum + evaluate(e->args[k]);
      return sum;
    }
    case Op::kNegate:
      return Complex::from(0) - evaluate(e->args[0]);
    case Op::kMultiply: {
      Complex product = evaluate(e->args[0]);
      for (std::size_t k = 1; k < e->args.size(); ++k)
        product = product * evaluate(e->args[k]);
      return product;
    }
    case Op::kDivide:
      return evaluate(e->args[0]) / evaluate(e->args[1]);
    case Op::kRatio:
      if (e->args.size() == 2) return evaluate(e->args[0]) / evaluate(e->args[1]);
      return opaque(e);
    case Op::kPower:
      return power(e);
    case Op::kCall:
      return call(e);
    case Op::kPercent:
      return evaluate(e->args[0]) / Complex::from(100);
    case Op::kDegree: {
      const Complex value = evaluate(e->args[0]);
      if (angle_depth_ == 0) return value;
      return value * Complex::from_real(real_pi()) / Complex::from(180);
    }
    case Op::kUnit:
      return evaluate(e->args[0]);
    default:
      return opaque(e);
  }
}

Complex Evaluator::opaque(Expression e) {
  std::uint64_t hash = hash_text(e->name, 77 + static_cast<int>(e->op) + 1000 * point_.index);
  hash =
      mix(hash ^ static_cast<unsigned char>(e->open) ^ (static_cast<std::uint64_t>(e->close) << 8));
  for (Expression arg : e->args)
    hash = hash_value(evaluate(arg), hash);
  return in_range(hash, 0, 3);
}

Complex Evaluator::power(Expression e) {
  const Complex base = evaluate(e->args[0]);
  const std::optional<Rational> exponent = exact_value(e->args[1], budget_);
  budget_.spend(20);
  if (!exponent) return complex_power(base, evaluate(e->args[1]));
  if (const std::optional<long> n = exponent->to_long()) return complex_integer_power(base, *n);
  const std::optional<long> below = exponent->denominator().to_long();
  const bool negative = base.is_real() && !base.is_zero() && base.re.sign() < 0;
  if (below == 2 || (negative && below && *below % 2 == 0)) left_reals_ |= negative;
  if (below == 2) {
    const std::optional<long> above = exponent->numerator().to_long();
    if (above) return complex_integer_power(complex_sqrt(base), *above);
  }
  // Odd roots of negative numbers are real, as in school mathematics.
  if (negative && below && *below % 2 == 1) {
    const std::optional<long> above = exponent->numerator().to_long();
    const Complex flipped{-base.re, Real(), base.error};
    const Complex root = complex_power(flipped, Complex::from(*exponent));
    if (above && *above % 2 != 0) return Complex::from(0) - root;
    return root;
  }
  return complex_power(base, Complex::from(*exponent));
}

Complex Evaluator::logarithm(const Complex& z) {
  left_reals_ |= z.is_real() && z.re.sign() < 0;
  return complex_log(z);
}

Complex Evaluator::call(Expression e) {
  budget_.spend(30);
  const std::string& name = e->name;
  if (name == "factorial" || name == "binom" || name == "gcd" || name == "lcm")
    return combinatorial(e);
  if (is_trigonometric(name)) return trigonometric(name, e->args[0]);
  if (e->args.empty()) return opaque(e);
  if (name == "based") return evaluate(e->args[0]);
  if (name == "max" || name == "min") return extreme(e, name == "max" ? 1 : -1);
  if (name == "exp" || name == "ln" || name == "log" || name == "lg" || name == "lb" ||
      name == "abs" || name == "floor" || name == "ceil" || name == "re" || name == "im" ||
      name.starts_with("arc") || is_hyperbolic(name)) {
    const Complex z = evaluate(e->args[0]);
    if (name == "exp") return complex_exp(z);
    if (name == "ln") return logarithm(z);
    if (name == "lg") return logarithm(z) / complex_log(Complex::from(10));
    if (name == "lb") return logarithm(z) / complex_log(Complex::from(2));
    if (name == "log") {
      if (e->args.size() > 1) return logarithm(z) / logarithm(evaluate(e->args[1]));
      return point_.log_base_ten ? logarithm(z) / complex_log(Complex::from(10)) : logarithm(z);
    }
    if (name == "abs") {
      if (z.is_real()) return {z.re.absolute(), Real(), z.error};
      return complex_sqrt({z.re * z.re + z.im * z.im, Real(), z.log2() + z.error + 2});
    }
    if (name == "re") return {z.re, Real(), z.error};
    if (name == "im") return {z.im, Real(), z.error};
    if (name == "floor" || name == "ceil") {
      const Real near = (z.re + Real(0.5)).floor();
      if ((z.re - near).log2() <= z.error + 4) return Complex::from_real(near);
      return Complex::from_real(name == "floor" ? z.re.floor() : z.re.floor() + Real(1));
    }
    return inverse(name, z);
  }
  return opaque(e);
}

// Factorials and binomials of values that turn out to be small integers.
Complex Evaluator::combinatorial(Expression e) {
  if (const auto value = exact_value(e, budget_)) return Complex::from(*value);
  if (variables(e).empty() && e->name == "factorial")
    throw BudgetExceeded("a factorial is too large");
  std::vector<unsigned long> integers;
  for (Expression arg : e->args) {
    const Complex z = evaluate(arg);
    const Real near = (z.re + Real(0.5)).floor();
    if (!z.is_real() || near.sign() < 0 || near.log2() > 9 || (z.re - near).log2() > z.error + 4)
      return opaque(e);
    integers.push_back(static_cast<unsigned long>(near.to_double()));
  }
  if (e->name == "factorial") return Complex::from(Rational::factorial(integers[0]));
  if (e->name == "binom" && integers.size() == 2)
    return Complex::from(Rational::binomial(integers[0], integers[1]));
  return opaque(e);
}

Complex Evaluator::trigonometric(const std::string& name, Expression argument) {
  ++angle_depth_;
  const Complex angle = evaluate(argument);
  --angle_depth_;
  Complex sine, cosine;
  complex_sin_cos(angle, sine, cosine);
  const Complex one = Complex::from(1);
  if (name == "sin") return sine;
  if (name == "cos") return cosine;
  if (name == "tan") return sine / cosine;
  if (name == "cot") return cosine / sine;
  return name == "sec" ? one / cosine : one / sine;
}

// Inverse trigonometric, hyperbolic and inverse hyperbolic functions.
Complex Evaluator::inverse(const std::string& name, const Complex& z) {
  const Complex one = Complex::from(1), half = Complex::from(Rational(1) / Rational(2));
  const Complex quarter_turn = Complex::from_real(real_pi()) * half;
  if (name == "arcsin") return complex_asin(z);
  if (name == "arccos") return quarter_turn - complex_asin(z);
  if (name == "arctan") return complex_atan(z);
  if (name == "arccot") return quarter_turn - complex_atan(z);
  if (name == "arccsc") return complex_asin(one / z);
  if (name == "arcsec") return quarter_turn - complex_asin(one / z);
  if (name == "arcsinh") return complex_log(z + complex_sqrt(z * z + one));
  if (name == "arccosh") return complex_log(z + complex_sqrt(z + one) * complex_sqrt(z - one));
  if (name == "arctanh") return (complex_log(one + z) - complex_log(one - z)) * half;
  const Complex up = complex_exp(z), down = one / up;
  const Complex sinh = (up - down) * half, cosh = (up + down) * half;
  if (name == "sinh") return sinh;
  if (name == "cosh") return cosh;
  if (name == "tanh") return sinh / cosh;
  if (name == "coth") return cosh / sinh;
  if (name == "sech") return one / cosh;
  if (name == "csch") return one / sinh;
  return in_range(hash_value(z, hash_text(name, point_.index)), 0, 3);
}

Complex Evaluator::extreme(Expression e, int sign) {
  Complex best = evaluate(e->args[0]);
  for (std::size_t k = 1; k < e->args.size(); ++k) {
    Complex value = evaluate(e->args[k]);
    if (!value.is_real() || !best.is_real()) return opaque(e);
    if ((value.re - best.re).sign() == sign) best = std::move(value);
  }
  return best;
}

}  // namespace antisd::inline reward::math
