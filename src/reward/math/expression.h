// The expression tree of an answer. Nodes live in an Arena and are immutable; an Expression is a
// plain pointer into it, valid as long as the Arena.
//
//   Arena arena;
//   Expression sum = arena.make(Op::kAdd, {arena.number(1), arena.symbol("x")});
#pragma once

#include <deque>
#include <initializer_list>
#include <string>
#include <vector>

#include "reward/math/number.h"

namespace antisd::inline reward::math {

enum class Op {
  kNumber,     // value; decimals >= 0 if it was written with a decimal point
  kSymbol,     // name: a variable, or one of the constants pi, e, i, infinity
  kWord,       // name: lower-case text that is not mathematics
  kAdd,        // args
  kNegate,     // arg
  kMultiply,   // args
  kDivide,     // two args
  kPower,      // base, exponent
  kCall,       // name of a function, args
  kPlusMinus,  // arg, either sign; name "mp" has the opposite sign of the others
  kPercent,    // arg
  kDegree,     // arg: radians inside a trigonometric function, otherwise a unit
  kUnit,       // arg measured in name, e.g. "cm^2"
  kRatio,      // a : b : ...
  kList,       // a, b, c without brackets: order-free
  kSet,        // {a, b}
  kTuple,      // open, close: the brackets; (a, b) may be a point or an interval
  kUnion,      // args
  kIntersect,  // args
  kMinus,      // set difference, two args
  kBuilder,    // { a | condition }
  kMatrix,     // args are rows (kTuple)
  kRelation,   // args chained by the characters of name (see Relation below)
};

// One character per relation in a chain: a < b <= c has the name "<l".
namespace relation {
inline constexpr char kEqual = '=', kLess = '<', kGreater = '>', kAtMost = 'l', kAtLeast = 'g',
                      kNotEqual = 'n', kIn = 'i', kApproximate = 'a', kOther = '~';
}

struct Node;
using Expression = const Node*;

struct Node {
  Op op = Op::kNumber;
  std::string name;
  Rational value;
  int decimals = -1;
  char open = 0, close = 0;
  int depth = 0;  // of the tree below; limited, so that recursion is safe
  std::vector<Expression> args;
};

class Arena {
 public:
  Expression make(Op op, std::vector<Expression> args, std::string name = {});
  Expression tuple(std::vector<Expression> args, char open, char close);
  Expression number(Rational value, int decimals = -1);
  Expression symbol(std::string name) { return make(Op::kSymbol, {}, std::move(name)); }

 private:
  static constexpr std::size_t kMaxNodes = 60'000;
  static constexpr int kMaxTreeDepth = 400;
  Node& fresh(std::vector<Expression> args);
  std::deque<Node> nodes_;
};

inline bool is_symbol(Expression e, std::string_view name) {
  return e->op == Op::kSymbol && e->name == name;
}

// Calls visit(node) for the node and all its descendants until one returns true; returns whether
// one did.
template <typename Visit>
bool any_node(Expression e, Visit&& visit) {
  if (visit(e)) return true;
  for (Expression arg : e->args)
    if (any_node(arg, visit)) return true;
  return false;
}

inline bool contains(Expression e, Op op) {
  return any_node(e, [op](Expression node) { return node->op == op; });
}

// Whether two trees are identical.
bool same_tree(Expression a, Expression b);

// The names of all variables, without the constants, sorted.
std::vector<std::string> variables(Expression e);

// The same tree with every plus-minus replaced by the sign +1 or -1.
Expression with_sign(Arena& arena, Expression e, int sign);

}  // namespace antisd::inline reward::math
