#include <fmt/format.h>

#include "text/jinja/depth.h"
#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/methods.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"

namespace antisd::inline text::jinja {

Value Interpreter::evaluate(const Expression& node) {
  const Depth depth(*this);
  spend();
  switch (node.kind) {
    case Expression::Kind::kConstant:
      return node.constant;
    case Expression::Kind::kName:
      return look_up(node);
    case Expression::Kind::kList:
    case Expression::Kind::kTuple:
    case Expression::Kind::kDict:
      return evaluate_container(node);
    case Expression::Kind::kAttribute:
      return evaluate_attribute(node);
    case Expression::Kind::kSlice:
      return evaluate_slice(node);
    case Expression::Kind::kCall:
      return evaluate_call(node);
    case Expression::Kind::kFilter:
      return evaluate_filter(node, nullptr);
    case Expression::Kind::kTest:
      return evaluate_test(node);
    case Expression::Kind::kNot:
      return Value::boolean(!truthy(evaluate(*node.operands[0])));
    case Expression::Kind::kNegative:
      return negative(evaluate(*node.operands[0]));
    case Expression::Kind::kPositive:
      return positive(evaluate(*node.operands[0]));
    case Expression::Kind::kItem:
    case Expression::Kind::kAnd:
    case Expression::Kind::kOr:
    case Expression::Kind::kArithmetic:
      return evaluate_binary(node);
    case Expression::Kind::kConcatenate:
      return evaluate_concatenation(node);
    case Expression::Kind::kCompare:
      return evaluate_compare(node);
    case Expression::Kind::kConditional:
      return evaluate_conditional(node);
  }
  return Value();
}

Value Interpreter::evaluate_binary(const Expression& node) {
  Value left = evaluate(*node.operands[0]);
  if (node.kind == Expression::Kind::kAnd) return truthy(left) ? evaluate(*node.operands[1]) : left;
  if (node.kind == Expression::Kind::kOr) return truthy(left) ? left : evaluate(*node.operands[1]);
  const Value right = evaluate(*node.operands[1]);
  line_ = node.line;
  if (node.kind == Expression::Kind::kItem) return get_item(*this, left, right);
  return arithmetic(*this, node.operators.front(), left, right);
}

Value Interpreter::evaluate_attribute(const Expression& node) {
  const Value owner = evaluate(*node.operands[0]);
  line_ = node.line;
  return get_attribute(*this, owner, node.name, node.constant);
}

Value Interpreter::evaluate_slice(const Expression& node) {
  const Value value = evaluate(*node.operands[0]);
  Value parts[3];
  for (std::size_t i = 0; i < 3; ++i) {
    if (node.operands[i + 1] != nullptr) parts[i] = evaluate(*node.operands[i + 1]);
  }
  line_ = node.line;
  return get_slice(*this, value, parts[0], parts[1], parts[2]);
}

Value Interpreter::evaluate_container(const Expression& node) {
  if (node.kind == Expression::Kind::kDict) {
    const auto dict = new_dict();
    for (std::size_t i = 0; i < node.operands.size(); i += 2) {
      Value key = evaluate(*node.operands[i]);
      dict->set(*this, std::move(key), evaluate(*node.operands[i + 1]));
    }
    return Value(std::shared_ptr<const Dict>(dict));
  }
  std::vector<Value> items;
  items.reserve(node.operands.size());
  for (const auto& operand : node.operands)
    items.push_back(evaluate(*operand));
  return list(std::move(items),
              node.kind == Expression::Kind::kTuple ? List::Kind::kTuple : List::Kind::kList);
}

Value Interpreter::evaluate_concatenation(const Expression& node) {
  std::string result;
  Charge memory(&heap(), 0);
  for (const auto& operand : node.operands) {
    const Value part = evaluate(*operand);
    const std::size_t before = result.size();
    if (part.is_text()) {
      result += part.text();
    } else {
      result += str(*this, part);
    }
    memory.grow(result.size() - before);
  }
  return text(std::move(result));
}

Value Interpreter::evaluate_compare(const Expression& node) {
  Value left = evaluate(*node.operands[0]);
  for (std::size_t i = 0; i < node.operators.size(); ++i) {
    Value right = evaluate(*node.operands[i + 1]);
    line_ = node.line;
    if (!compare(*this, node.operators[i], left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Interpreter::evaluate_conditional(const Expression& node) {
  if (truthy(evaluate(*node.operands[1]))) return evaluate(*node.operands[0]);
  if (node.operands[2] != nullptr) return evaluate(*node.operands[2]);
  return undefined_hint(
      fmt::format("the inline if-expression on line {} evaluated to false and no else section was "
                  "defined.",
                  node.line));
}

// The arguments of a call, a filter or a test; operands[0] is what they apply to.
Arguments Interpreter::evaluate_arguments(const Expression& node) {
  Arguments arguments;
  arguments.positional.reserve(node.operands.size() - 1);
  for (std::size_t i = 1; i < node.operands.size(); ++i) {
    arguments.positional.push_back(evaluate(*node.operands[i]));
  }
  for (const auto& [name, value] : node.named) {
    arguments.named.emplace_back(name, evaluate(*value));
  }
  if (node.star != nullptr) {
    const auto rest = elements(*this, evaluate(*node.star));
    spend(rest->items.size());
    arguments.positional.insert(arguments.positional.end(), rest->items.begin(), rest->items.end());
  }
  if (node.star_star != nullptr) {
    const Value rest = evaluate(*node.star_star);
    require_defined(rest);
    if (!rest.is_dict()) fail("argument after ** must be a mapping");
    spend(rest.dict().entries.size());
    for (const auto& [name, value] : rest.dict().entries) {
      if (!name.is_text()) fail("keywords must be strings");
      arguments.named.emplace_back(name.text(), value);
    }
  }
  return arguments;
}

Value Interpreter::evaluate_call(const Expression& node) {
  const Expression& callee = *node.operands.front();
  if (callee.kind != Expression::Kind::kAttribute) {
    const Value function = evaluate(callee);
    Arguments arguments = evaluate_arguments(node);
    line_ = node.line;
    return call(function, arguments);
  }
  const Value owner = evaluate(*callee.operands.front());
  line_ = callee.line;
  if (has_allowed_method(owner, callee.name)) {
    Arguments arguments = evaluate_arguments(node);
    line_ = node.line;
    return call_method(*this, owner, callee.name, arguments);
  }
  const Value function = get_attribute(*this, owner, callee.name, callee.constant);
  Arguments arguments = evaluate_arguments(node);
  line_ = node.line;
  return call(function, arguments);
}

// `input`: the input of the innermost filter, from a filter block.
Value Interpreter::evaluate_filter(const Expression& node, const Value* input) {
  const Depth depth(*this);
  spend();
  const auto piped = [&]() -> Value {
    if (node.operands.front() == nullptr) return *input;
    if (input != nullptr) return evaluate_filter(*node.operands.front(), input);
    return evaluate(*node.operands.front());
  };
  const Value value = piped();
  Arguments arguments = evaluate_arguments(node);
  line_ = node.line;
  if (node.filter == nullptr) return apply_filter(*this, node.name, value, arguments);
  return node.filter(*this, value, arguments);
}

Value Interpreter::evaluate_test(const Expression& node) {
  const Value value = evaluate(*node.operands.front());
  Arguments arguments = evaluate_arguments(node);
  line_ = node.line;
  if (node.test == nullptr) {
    throw Failure{fmt::format("No test named '{}'.", node.name), "use one of Jinja's own tests"};
  }
  return Value::boolean(node.test(*this, value, arguments));
}

}  // namespace antisd::inline text::jinja
