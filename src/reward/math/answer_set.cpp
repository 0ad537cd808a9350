#include "reward/math/answer_set.h"

#include <algorithm>

#include "reward/math/evaluate.h"

namespace antisd::inline reward::math {
namespace {

// Ends cannot be ordered (not real, or too imprecise): the expression is not a set of reals.
struct NotReal {};

int infinity_sign(Expression e) {
  if (is_symbol(e, "infinity")) return 1;
  if (e->op == Op::kNegate && is_symbol(e->args[0], "infinity")) return -1;
  return 0;
}

int order(Expression a, Expression b, Budget& budget) {
  if (a == b) return 0;
  const int sign = compare_order(a, b, budget);
  if (sign == -2) throw NotReal{};
  return sign;
}

// Order of lower ends: -infinity first, closed before open.
int order_low(const Piece& a, const Piece& b, Budget& budget) {
  if (a.low == nullptr || b.low == nullptr) return (a.low != nullptr) - (b.low != nullptr);
  if (const int sign = order(a.low, b.low, budget); sign != 0) return sign;
  return static_cast<int>(b.low_closed) - static_cast<int>(a.low_closed);
}

int order_high(const Piece& a, const Piece& b, Budget& budget) {
  if (a.high == nullptr || b.high == nullptr) return (b.high != nullptr) - (a.high != nullptr);
  if (const int sign = order(a.high, b.high, budget); sign != 0) return sign;
  return static_cast<int>(a.high_closed) - static_cast<int>(b.high_closed);
}

bool is_empty(const Piece& piece, Budget& budget) {
  if (piece.low == nullptr || piece.high == nullptr) return false;
  const int sign = order(piece.low, piece.high, budget);
  return sign > 0 || (sign == 0 && !(piece.low_closed && piece.high_closed));
}

// Whether b starts at or before the end of a, without a gap; a starts no later than b.
bool touches(const Piece& a, const Piece& b, Budget& budget) {
  if (a.high == nullptr || b.low == nullptr) return true;
  const int sign = order(b.low, a.high, budget);
  return sign < 0 || (sign == 0 && (a.high_closed || b.low_closed));
}

RealSet canonical(RealSet pieces, Budget& budget) {
  if (pieces.size() > 200) throw BudgetExceeded("a set has too many parts");
  std::erase_if(pieces, [&](const Piece& piece) { return is_empty(piece, budget); });
  // Insertion sort: its comparison may throw, and answers have few pieces.
  for (std::size_t k = 1; k < pieces.size(); ++k)
    for (std::size_t j = k; j > 0 && order_low(pieces[j], pieces[j - 1], budget) < 0; --j)
      std::swap(pieces[j], pieces[j - 1]);
  RealSet merged;
  for (const Piece& piece : pieces) {
    if (merged.empty() || !touches(merged.back(), piece, budget)) {
      merged.push_back(piece);
    } else if (order_high(merged.back(), piece, budget) < 0) {
      merged.back().high = piece.high;
      merged.back().high_closed = piece.high_closed;
    }
  }
  return merged;
}

RealSet complement(const RealSet& set) {
  RealSet result;
  Piece next{};
  bool open_ended = true;
  for (const Piece& piece : set) {
    if (piece.low != nullptr) {
      next.high = piece.low;
      next.high_closed = !piece.low_closed;
      result.push_back(next);
    }
    open_ended = piece.high != nullptr;
    next = {piece.high, nullptr, !piece.high_closed, false};
  }
  if (open_ended) result.push_back(next);
  return result;
}

RealSet intersect(const RealSet& a, const RealSet& b, Budget& budget) {
  RealSet result;
  for (const Piece& x : a)
    for (const Piece& y : b) {
      Piece piece = order_low(x, y, budget) > 0 ? Piece{x.low, nullptr, x.low_closed, false}
                                                : Piece{y.low, nullptr, y.low_closed, false};
      const Piece& end = order_high(x, y, budget) < 0 ? x : y;
      piece.high = end.high;
      piece.high_closed = end.high_closed;
      result.push_back(piece);
    }
  return canonical(std::move(result), budget);
}

bool is_variable(Expression e) {
  const bool name =
      e->op == Op::kSymbol || (e->op == Op::kCall && e->name.starts_with("function "));
  return name && !variables(e).empty();
}

// The set of values for which "variable ? bound" holds.
std::optional<RealSet> half_line(Expression bound, char relation, bool variable_left,
                                 Budget& budget) {
  if (!variables(bound).empty() && infinity_sign(bound) == 0) return std::nullopt;
  if (!variable_left) {
    if (relation == relation::kLess)
      relation = relation::kGreater;
    else if (relation == relation::kGreater)
      relation = relation::kLess;
    else if (relation == relation::kAtMost)
      relation = relation::kAtLeast;
    else if (relation == relation::kAtLeast)
      relation = relation::kAtMost;
  }
  if (infinity_sign(bound) != 0) return RealSet{Piece{}};
  switch (relation) {
    case relation::kLess:
      return RealSet{{nullptr, bound, false, false}};
    case relation::kAtMost:
      return RealSet{{nullptr, bound, false, true}};
    case relation::kGreater:
      return RealSet{{bound, nullptr, false, false}};
    case relation::kAtLeast:
      return RealSet{{bound, nullptr, true, false}};
    case relation::kNotEqual:
      return complement({{bound, bound, true, true}});
    case relation::kIn:
      return variable_left ? to_real_set(bound, budget) : std::nullopt;
    default:
      return std::nullopt;
  }
}

std::optional<RealSet> from_relation(Expression e, Budget& budget) {
  RealSet result = {Piece{}};
  std::string variable;
  for (std::size_t k = 0; k + 1 < e->args.size(); ++k) {
    Expression left = e->args[k], right = e->args[k + 1];
    const char relation = e->name[k];
    const bool variable_left = is_variable(left);
    if (!variable_left && !is_variable(right)) return std::nullopt;
    const std::string& name = (variable_left ? left : right)->name;
    if (!variable.empty() && variable != name) return std::nullopt;
    variable = name;
    std::optional<RealSet> part;
    if (relation == relation::kIn)
      part = variable_left ? to_real_set(right, budget) : std::nullopt;
    else
      part = half_line(variable_left ? right : left, relation, variable_left, budget);
    if (!part) return std::nullopt;
    result = intersect(result, *part, budget);
  }
  return result;
}

// "x < 1 or x > 2" and "x > 1 and x < 2" look the same here: parts that intersect are conditions on
// one variable, parts that do not are alternatives.
std::optional<RealSet> from_list(Expression e, Budget& budget) {
  std::optional<RealSet> both;
  RealSet either;
  for (Expression item : e->args) {
    if (item->op != Op::kRelation && item->op != Op::kUnion) return std::nullopt;
    const std::optional<RealSet> part = to_real_set(item, budget);
    if (!part) return std::nullopt;
    both = both ? intersect(*both, *part, budget) : *part;
    either.insert(either.end(), part->begin(), part->end());
  }
  if (both && !both->empty()) return both;
  return canonical(std::move(either), budget);
}

std::optional<RealSet> from_interval(Expression e, Budget& budget) {
  if (e->args.size() != 2) return std::nullopt;
  const int low = infinity_sign(e->args[0]), high = infinity_sign(e->args[1]);
  if (low > 0 || high < 0) return std::nullopt;
  for (Expression end : e->args)
    if (infinity_sign(end) == 0 && !variables(end).empty()) return std::nullopt;
  Piece piece{low == 0 ? e->args[0] : nullptr, high == 0 ? e->args[1] : nullptr, e->open == '[',
              e->close == ']'};
  if (is_empty(piece, budget)) return std::nullopt;  // (5, 3) is a point, whatever its brackets
  return canonical({piece}, budget);
}

std::optional<RealSet> convert(Expression e, Budget& budget) {
  budget.spend(5);
  switch (e->op) {
    case Op::kTuple:
      return from_interval(e, budget);
    case Op::kRelation:
      return from_relation(e, budget);
    case Op::kList:
      return from_list(e, budget);
    case Op::kBuilder:
      return convert(e->args[1], budget);
    case Op::kSymbol:
      if (e->name == "Reals") return RealSet{Piece{}};
      return std::nullopt;
    case Op::kSet: {
      RealSet points;
      for (Expression item : e->args) {
        if (!variables(item).empty()) return std::nullopt;
        points.push_back({item, item, true, true});
      }
      return canonical(std::move(points), budget);
    }
    case Op::kUnion: {
      RealSet all;
      for (Expression part : e->args) {
        const auto set = convert(part, budget);
        if (!set) return std::nullopt;
        all.insert(all.end(), set->begin(), set->end());
      }
      return canonical(std::move(all), budget);
    }
    case Op::kIntersect:
    case Op::kMinus:
    case Op::kAdd: {
      if (e->args.size() != 2) return std::nullopt;
      Expression second = e->args[1];
      // R - {0}, written with a minus sign.
      if (e->op == Op::kAdd) {
        if (second->op != Op::kNegate || second->args[0]->op != Op::kSet) return std::nullopt;
        second = second->args[0];
      }
      const auto left = convert(e->args[0], budget), right = convert(second, budget);
      if (!left || !right) return std::nullopt;
      return intersect(*left, e->op == Op::kIntersect ? *right : complement(*right), budget);
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

Expression without_bars(Arena& arena, Expression e) {
  if (e->op == Op::kList || e->op == Op::kUnion || e->op == Op::kBuilder) {
    std::vector<Expression> args;
    for (Expression arg : e->args)
      args.push_back(without_bars(arena, arg));
    return arena.make(e->op, std::move(args), e->name);
  }
  if (e->op != Op::kRelation) return e;
  const auto is_bars = [](Expression side) {
    return side->op == Op::kCall && side->name == "abs" && side->args[0]->op == Op::kSymbol;
  };
  const auto bars = std::find_if(e->args.begin(), e->args.end(), is_bars);
  if (bars == e->args.end()) return e;
  Expression x = (*bars)->args[0];
  std::string flipped = e->name;
  for (char& c : flipped)
    c = c == '<' ? '>' : c == '>' ? '<' : c == 'l' ? 'g' : c == 'g' ? 'l' : c;
  std::vector<Expression> above, below;  // the sides for x >= 0 and for x <= 0
  for (Expression side : e->args) {
    above.push_back(is_bars(side) ? side->args[0] : side);
    below.push_back(is_bars(side) ? side->args[0] : arena.make(Op::kNegate, {side}));
  }
  const auto part = [&](std::vector<Expression> sides, const std::string& relations,
                        const char* sign) {
    return arena.make(Op::kIntersect, {arena.make(Op::kRelation, std::move(sides), relations),
                                       arena.make(Op::kRelation, {x, arena.number(0)}, sign)});
  };
  return arena.make(Op::kUnion,
                    {part(std::move(above), e->name, "g"), part(std::move(below), flipped, "l")});
}

std::optional<RealSet> to_real_set(Expression e, Budget& budget) {
  try {
    return convert(e, budget);
  } catch (const NotReal&) {
    return std::nullopt;
  } catch (const Undefined&) {
    return std::nullopt;
  }
}

bool is_surely_set(Expression e) {
  switch (e->op) {
    case Op::kUnion:
    case Op::kIntersect:
    case Op::kMinus:
    case Op::kBuilder:
      return true;
    case Op::kSymbol:
      return e->name == "Reals";
    case Op::kRelation:
      return e->name.find_first_not_of("=~a") != std::string::npos;
    case Op::kList:
      return !e->args.empty() && std::all_of(e->args.begin(), e->args.end(), is_surely_set);
    case Op::kTuple:
      return e->args.size() == 2 &&
             ((e->open == '[') != (e->close == ']') || infinity_sign(e->args[0]) != 0 ||
              infinity_sign(e->args[1]) != 0);
    case Op::kAdd:
      return is_symbol(e->args[0], "Reals");
    default:
      return false;
  }
}

bool equal_sets(const RealSet& a, const RealSet& b, Budget& budget) {
  if (a.size() != b.size()) return false;
  for (std::size_t k = 0; k < a.size(); ++k) {
    try {
      if (order_low(a[k], b[k], budget) != 0 || order_high(a[k], b[k], budget) != 0) return false;
    } catch (const NotReal&) {
      return false;
    }
  }
  return true;
}

}  // namespace antisd::inline reward::math
