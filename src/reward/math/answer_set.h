// Sets of real numbers in a canonical form, so that x > 3, (3, oo), {x | 3 < x} and
// R \ (-oo, 3] are one set. Only for sets whose ends are constants.
#pragma once

#include <optional>
#include <vector>

#include "reward/math/budget.h"
#include "reward/math/expression.h"

namespace antisd::inline reward::math {

struct Piece {
  Expression low = nullptr, high = nullptr;  // null: unbounded on that side
  bool low_closed = false, high_closed = false;
};

// Sorted, disjoint and not adjacent; a point is a closed piece with low == high.
using RealSet = std::vector<Piece>;

// A condition on |x| as the same condition on x or -x, whichever is not negative; anything else
// unchanged. Applies to the members of lists and unions.
Expression without_bars(Arena& arena, Expression e);

// The set that an expression denotes, or nothing if it is not such a set. An equation is not one.
std::optional<RealSet> to_real_set(Expression e, Budget& budget);

// Whether an expression can only be a set of numbers: an inequality, a union, an interval with
// mixed brackets or an infinite end. (1, 2) may also be a point.
bool is_surely_set(Expression e);

bool equal_sets(const RealSet& a, const RealSet& b, Budget& budget);

}  // namespace antisd::inline reward::math
