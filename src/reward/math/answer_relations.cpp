// Equations and inequalities; see answer_compare.h for the conventions.
#include <algorithm>

#include "reward/math/answer_compare.h"
#include "reward/math/normal_form.h"

namespace antisd::inline reward::math {
namespace {

bool is_equation(Expression e) {
  return e->op == Op::kRelation && e->name.find_first_not_of(relation::kEqual) == std::string::npos;
}

// The left side of an assignment: x, AB, f(x), dy/dx, (x, y).
bool is_name(Expression e) {
  switch (e->op) {
    case Op::kSymbol:
      return e->name != "pi" && e->name != "infinity";
    case Op::kWord:
      return true;
    case Op::kCall:
      return e->name.starts_with("function ") || e->name.starts_with("prime") || e->name == "det" ||
             e->name == "abs" || e->name == "subscript" || is_name(e->args[0]);
    case Op::kMultiply:
    case Op::kTuple:
    case Op::kDivide:
    case Op::kRatio:
    case Op::kList:
    case Op::kUnit:
      return std::all_of(e->args.begin(), e->args.end(), is_name);
    case Op::kPower:
      return is_name(e->args[0]);
    default:
      return false;
  }
}

bool is_assignment(Expression e) {
  return is_equation(e) && is_name(e->args[0]);
}

// The value that an equation states; null if it relates unknowns.
Expression stated_value(Expression e) {
  if (is_assignment(e)) return e->args.back();
  if (!variables(e->args[0]).empty()) return nullptr;
  // 5 + 5 = 10, or 10 = x; but 10 = x + y relates x and y.
  if (variables(e->args.back()).empty()) return e->args.back();
  return is_name(e->args.back()) ? e->args.front() : nullptr;
}

}  // namespace

Expression AnswerComparer::difference(Expression a, Expression b) {
  return arena_.make(Op::kAdd, {a, arena_.make(Op::kNegate, {b})});
}

// The sides of "1/3 \approx 0.333", each an answer; the name in "x \approx 3" is not.
std::vector<Expression> AnswerComparer::approximate_sides(Expression e) {
  const std::size_t at =
      e->op == Op::kRelation ? e->name.find(relation::kApproximate) : std::string::npos;
  if (at == std::string::npos) return {e};
  const auto part = [&](std::size_t first, std::size_t last) {
    if (first == last) return e->args[first];
    return arena_.make(Op::kRelation, {e->args.begin() + first, e->args.begin() + last + 1},
                       e->name.substr(first, last - first));
  };
  Expression rounded = part(at + 1, e->args.size() - 1);
  if (at == 0 && is_name(e->args[0])) return {rounded};
  return {part(0, at), rounded};
}

Comparison AnswerComparer::compare_relations(Expression a, Expression b) {
  const std::vector<Expression> sides_a = approximate_sides(a), sides_b = approximate_sides(b);
  if (sides_a[0] != a || sides_b[0] != b) {
    for (Expression x : sides_a)
      for (Expression y : sides_b)
        if (compare(x, y) == Comparison::kEqual) return Comparison::kEqual;
    return Comparison::kDifferent;
  }
  const bool equation_a = is_equation(a), equation_b = is_equation(b);
  if (equation_a && equation_b) return compare_equations(a, b);
  if (equation_a || equation_b) {
    Expression equation = equation_a ? a : b, other = equation_a ? b : a;
    if (other->op == Op::kRelation) return Comparison::kDifferent;
    Expression value = stated_value(equation);
    // A list of values against one equation: the equation states too few values.
    return value == nullptr ? Comparison::kDifferent : compare(value, other);
  }
  if (a->op == Op::kRelation && b->op == Op::kRelation) return compare_inequalities(a, b);
  // x in S against S
  Expression relation = a->op == Op::kRelation ? a : b, other = a->op == Op::kRelation ? b : a;
  if (relation->name == std::string(1, relation::kIn)) return compare(relation->args[1], other);
  if (relation->name.back() == relation::kOther) return compare(relation->args.back(), other);
  return Comparison::kDifferent;
}

Comparison AnswerComparer::compare_equations(Expression a, Expression b) {
  if (is_assignment(a) && is_assignment(b)) {
    Expression name_a = a->args[0], name_b = b->args[0];
    const bool same_name = compare(name_a, name_b) == Comparison::kEqual;
    // y = ... and f(x) = ... both define a function.
    const bool function = (name_a->op == Op::kCall) != (name_b->op == Op::kCall);
    if (same_name || function) {
      const Comparison values = compare(a->args.back(), b->args.back());
      if (values != Comparison::kUnknown || function) return values;
    }
  }
  const auto scalar = [](Expression e) {
    return !contains(e, Op::kTuple) && !contains(e, Op::kSet) && !contains(e, Op::kMatrix) &&
           !contains(e, Op::kList);
  };
  if (!scalar(a) || !scalar(b)) return compare_ordered(a->args, b->args);
  if (a->args.size() > 2 && a->args.size() == b->args.size() &&
      compare_ordered(a->args, b->args) == Comparison::kEqual)
    return Comparison::kEqual;
  Expression left = difference(a->args.front(), a->args.back());
  Expression right = difference(b->args.front(), b->args.back());
  // xy = 1 and y = 1/x have the same numerator.
  Normalizer normalizer(budget_);
  const auto form_left = normalizer.normalize(left), form_right = normalizer.normalize(right);
  if (form_left && form_right &&
      normalizer.compare_zeros(*form_left, *form_right) == Comparison::kEqual)
    return Comparison::kEqual;
  return compare_proportional(left, right, /*positive=*/false, budget_);
}

Comparison AnswerComparer::compare_inequalities(Expression a, Expression b) {
  // Every chain is read from small to large.
  const auto ascending = [&](Expression e) -> Expression {
    if (e->name.find_first_of("<l") != std::string::npos) return e;
    if (e->name.find_first_of(">g") == std::string::npos) return e;
    std::vector<Expression> sides(e->args.rbegin(), e->args.rend());
    std::string relations(e->name.rbegin(), e->name.rend());
    for (char& c : relations)
      c = c == '>' ? '<' : c == 'g' ? 'l' : c;
    return arena_.make(Op::kRelation, std::move(sides), std::move(relations));
  };
  a = ascending(a);
  b = ascending(b);
  if (a->name != b->name || a->args.size() != b->args.size()) return Comparison::kDifferent;
  if (a->args.size() == 2 && (a->name == "<" || a->name == "l"))
    return compare_proportional(difference(a->args[1], a->args[0]),
                                difference(b->args[1], b->args[0]),
                                /*positive=*/true, budget_);
  if (a->name == "n")
    return compare_proportional(difference(a->args[1], a->args[0]),
                                difference(b->args[1], b->args[0]),
                                /*positive=*/false, budget_);
  return compare_ordered(a->args, b->args);
}

}  // namespace antisd::inline reward::math
