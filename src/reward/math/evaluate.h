// The value of an expression: exactly, where it is rational, or numerically at a chosen point.
//
// Variables get values derived from their names and a seed, so that the same variable has the same
// value on both sides of a comparison. What has no numeric meaning (an unknown function, a set
// inside a call) gets a value derived from its name and the values of its parts: it equals itself,
// however its parts are written, and nothing else.
#pragma once

#include <optional>

#include "reward/math/budget.h"
#include "reward/math/expression.h"
#include "reward/math/real.h"

namespace antisd::inline reward::math {

// The value of an expression without variables, where it is a rational number that fits.
std::optional<Rational> exact_value(Expression e, Budget& budget);

struct Point {
  int index = 0;              // which of the points; 0 and 1 have positive coordinates only
  bool log_base_ten = false;  // what \log without a base means
  bool integers = false;      // variables are positive integers, as factorials need
};
inline constexpr int kPoints = 6;

class Evaluator {
 public:
  Evaluator(Point point, Budget& budget) : point_(point), budget_(budget) {}

  // Throws Undefined (a pole at this point) or BudgetExceeded.
  Complex evaluate(Expression e);

  // Whether a negative number met an even root or a logarithm on the way: the point is outside the
  // domain over the reals, where identities such as sqrt(x^3) = x sqrt(x) end.
  bool left_reals() const { return left_reals_; }

 private:
  Complex power(Expression e);
  Complex call(Expression e);
  Complex trigonometric(const std::string& name, Expression argument);
  Complex inverse(const std::string& name, const Complex& z);
  Complex extreme(Expression e, int sign);
  Complex combinatorial(Expression e);
  Complex logarithm(const Complex& z);
  Complex variable(const std::string& name);
  Complex opaque(Expression e);

  Point point_;
  Budget& budget_;
  int angle_depth_ = 0;  // inside trigonometric functions, where degrees are angles
  bool left_reals_ = false;
};

// Compares two expressions exactly where possible, then at several points.
enum class Comparison { kEqual, kDifferent, kUnknown };
Comparison compare_values(Expression a, Expression b, Budget& budget, bool log_base_ten = false);

// Whether there is a constant c != 0 with a = c b at all points: equations of the same solutions.
// With `positive`, c > 0, as inequalities need.
Comparison compare_proportional(Expression a, Expression b, bool positive, Budget& budget);

// The sign of the difference of two constants, where it can be told; -2 where not.
int compare_order(Expression a, Expression b, Budget& budget);

}  // namespace antisd::inline reward::math
