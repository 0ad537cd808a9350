#include "reward/math/expression.h"

#include <algorithm>
#include <utility>

namespace antisd::inline reward::math {

Node& Arena::fresh(std::vector<Expression> args) {
  if (nodes_.size() >= kMaxNodes) throw BudgetExceeded("an expression has too many parts");
  int depth = 0;
  for (Expression arg : args)
    depth = std::max(depth, arg->depth + 1);
  if (depth > kMaxTreeDepth) throw BudgetExceeded("an expression is nested too deeply");
  Node& node = nodes_.emplace_back();
  node.depth = depth;
  node.args = std::move(args);
  return node;
}

Expression Arena::make(Op op, std::vector<Expression> args, std::string name) {
  Node& node = fresh(std::move(args));
  node.op = op;
  node.name = std::move(name);
  return &node;
}

Expression Arena::tuple(std::vector<Expression> args, char open, char close) {
  Node& node = fresh(std::move(args));
  node.op = Op::kTuple;
  node.open = open;
  node.close = close;
  return &node;
}

Expression Arena::number(Rational value, int decimals) {
  Node& node = fresh({});
  node.op = Op::kNumber;
  node.value = std::move(value);
  node.decimals = decimals;
  return &node;
}

bool same_tree(Expression a, Expression b) {
  if (a->op != b->op || a->name != b->name || a->args.size() != b->args.size()) return false;
  if (a->op == Op::kNumber) return a->value == b->value;
  if (a->op == Op::kTuple && (a->open != b->open || a->close != b->close)) return false;
  for (std::size_t k = 0; k < a->args.size(); ++k)
    if (!same_tree(a->args[k], b->args[k])) return false;
  return true;
}

std::vector<std::string> variables(Expression e) {
  std::vector<std::string> names;
  any_node(e, [&](Expression node) {
    const bool constant =
        node->name == "pi" || node->name == "e" || node->name == "i" || node->name == "infinity";
    if ((node->op == Op::kSymbol && !constant) || node->op == Op::kWord)
      names.push_back(node->name);
    return false;
  });
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Expression with_sign(Arena& arena, Expression e, int sign) {
  if (!contains(e, Op::kPlusMinus)) return e;
  if (e->op == Op::kPlusMinus) {
    const int own = e->name == "mp" ? -sign : sign;
    Expression inner = with_sign(arena, e->args[0], sign);
    return own > 0 ? inner : arena.make(Op::kNegate, {inner});
  }
  std::vector<Expression> args;
  for (Expression arg : e->args)
    args.push_back(with_sign(arena, arg, sign));
  if (e->op == Op::kTuple) return arena.tuple(std::move(args), e->open, e->close);
  return arena.make(e->op, std::move(args), e->name);
}

}  // namespace antisd::inline reward::math
