// The value of an expression: exact if it is rational, otherwise numeric at a chosen point.
//
// Variables get values derived from their names and a seed, so that a variable has the same value
// on both sides of a comparison. What has no numeric meaning (an unknown function, a set inside a
// call) gets a value derived from its name and the values of its parts: it equals only itself,
// however its parts are written.
#pragma once

#include <optional>

#include "reward/math/budget.h"
#include "reward/math/expression.h"
#include "reward/math/real.h"

namespace antisd::inline reward::math {

// The value of an expression without variables, if it is a rational number that fits.
std::optional<Rational> exact_value(Expression e, Budget& budget);

struct Point {
  int index = 0;              // of the point; 0 and 1 have only positive coordinates
  bool log_base_ten = false;  // the meaning of \log without a base
  bool integers = false;      // variables are positive integers, for factorials
};
inline constexpr int kPoints = 6;

class Evaluator {
 public:
  Evaluator(Point point, Budget& budget) : point_(point), budget_(budget) {}

  // Throws Undefined (a pole at this point) or BudgetExceeded.
  Complex evaluate(Expression e);

  // Whether an even root or a logarithm got a negative number: the point is outside the real
  // domain, where identities such as sqrt(x^3) = x sqrt(x) no longer hold.
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

// Compares two expressions exactly if possible, otherwise at several points.
enum class Comparison { kEqual, kDifferent, kUnknown };
Comparison compare_values(Expression a, Expression b, Budget& budget, bool log_base_ten = false);

// Whether there is a constant c != 0 with a = c b at all points: equations with the same solutions.
// With `positive`, c > 0, for inequalities.
Comparison compare_proportional(Expression a, Expression b, bool positive, Budget& budget);

// The sign of the difference of two constants if it can be determined, otherwise -2.
int compare_order(Expression a, Expression b, Budget& budget);

}  // namespace antisd::inline reward::math
