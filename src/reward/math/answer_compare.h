// Whether two parsed answers are equal: numbers, expressions, equations, sets, tuples, matrices.
//
// Conventions where there are several:
// - a list "1, 2, 3" and a set are order-free; against a tuple (1, 2, 3) the written order counts;
// - (1, 2) and [1, 2] differ, as do all brackets of pairs; of longer tuples any bracket will do;
// - "x = 5" equals "5"; "x = 5" and "y = 5" differ; chains a = b = c mean a = c; 7 = a + b states
//   no value;
// - 50 % equals 0.5 and equals 50; a unit is ignored unless both sides have one of the table;
// - degrees equal the same number without them, and the angle in radians where that has a pi;
// - a decimal equals an exact value that it only approximates if it shows six decimals or more and
//   is that value correctly rounded or cut off: 0.333333 is 1/3, .3333 is not;
// - repeated elements of lists and sets count once; 4343_6 equals 4343, its digits without the
//   base;
// - \log without a base may be natural or decimal, whichever makes the two sides agree;
// - a ratio with a zero is a time of day: 10:00 is not 1:00.
#pragma once

#include "reward/math/budget.h"
#include "reward/math/evaluate.h"
#include "reward/math/expression.h"

namespace antisd::inline reward::math {

class AnswerComparer {
 public:
  AnswerComparer(Arena& arena, Budget& budget, double relative_tolerance)
      : arena_(arena), budget_(budget), relative_tolerance_(relative_tolerance) {}

  Comparison compare(Expression a, Expression b);

 private:
  using Items = std::vector<Expression>;

  Comparison compare_relations(Expression a, Expression b);
  Comparison compare_equations(Expression a, Expression b);
  Comparison compare_inequalities(Expression a, Expression b);
  Comparison compare_collections(Expression a, Expression b);
  Comparison compare_ordered(const Items& a, const Items& b);
  Comparison compare_unordered(Items a, Items b, bool drop_repeats);
  Comparison compare_matrices(Expression a, Expression b);
  Comparison compare_ratios(Expression a, Expression b);
  Comparison compare_scalars(Expression a, Expression b);
  Comparison compare_quantities(Expression a, Expression b);
  bool is_close(Expression gold, Expression found);
  bool approximates(Expression decimal, Expression exact);

  Expression difference(Expression a, Expression b);
  Expression as_matrix(Expression e);
  Items approximate_sides(Expression e);
  Expression without_words(Expression e, Expression other);
  Items items_of(Expression e);
  Items without_repeats(Items items);

  Arena& arena_;
  Budget& budget_;
  double relative_tolerance_;
  int depth_ = 0;
};

}  // namespace antisd::inline reward::math
