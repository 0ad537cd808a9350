#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

#include "text/jinja/filters.h"
#include "text/jinja/nesting.h"
#include "text/jinja/parser.h"
#include "text/jinja/predicates.h"

namespace antisd::inline text::jinja {
namespace {

using Type = Token::Type;

}  // namespace

ExpressionPtr Parser::make(Expression::Kind kind, int line) const {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->line = line;
  return node;
}

ExpressionPtr Parser::finish(ExpressionPtr node) const {
  int below = 0;
  const auto look = [&](const ExpressionPtr& child) {
    if (child != nullptr) below = std::max(below, child->depth);
  };
  for (const auto& operand : node->operands)
    look(operand);
  for (const auto& named : node->named)
    look(named.second);
  look(node->star);
  look(node->star_star);
  node->depth = below + 1;
  if (node->depth > kMaxTreeDepth) {
    fail(fmt::format("an expression of more than {} levels", kMaxTreeDepth), node->line);
  }
  return node;
}

ExpressionPtr Parser::binary(Expression::Kind kind, int line, ExpressionPtr left,
                             ExpressionPtr right) {
  auto node = make(kind, line);
  node->operands.push_back(std::move(left));
  node->operands.push_back(std::move(right));
  return finish(std::move(node));
}

ExpressionPtr Parser::parse_tuple(bool conditional, bool parenthesized) {
  const int line = current().line;
  auto tuple = make(Expression::Kind::kTuple, line);
  bool is_tuple = false;
  while (true) {
    if (!tuple->operands.empty()) expect(",");
    if (at_end_of_tag() || current().is(")")) break;
    if (!conditional && current().is_name("recursive")) break;
    tuple->operands.push_back(parse_expression(conditional));
    if (!current().is(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !tuple->operands.empty()) return std::move(tuple->operands.front());
  if (!is_tuple && !parenthesized) {
    fail(fmt::format("Expected an expression, got '{}'", current().description()));
  }
  return finish(std::move(tuple));
}

ExpressionPtr Parser::parse_expression(bool conditional) {
  const Nesting nesting(*this);
  return conditional ? parse_conditional() : parse_or();
}

ExpressionPtr Parser::parse_conditional() {
  const Nesting nesting(*this);
  const int line = current().line;
  const std::size_t unknown_before = unknown_.size();
  ExpressionPtr value = parse_or();
  while (skip_name("if")) {
    auto node = make(Expression::Kind::kConditional, line);
    node->operands.push_back(std::move(value));
    node->operands.push_back(parse_or());
    node->operands.push_back(skip_name("else") ? parse_conditional() : nullptr);
    value = finish(std::move(node));
    unknown_.resize(unknown_before);
  }
  return value;
}

ExpressionPtr Parser::parse_or() {
  const int line = current().line;
  ExpressionPtr left = parse_and();
  while (skip_name("or"))
    left = binary(Expression::Kind::kOr, line, std::move(left), parse_and());
  return left;
}

ExpressionPtr Parser::parse_and() {
  const int line = current().line;
  ExpressionPtr left = parse_not();
  while (skip_name("and"))
    left = binary(Expression::Kind::kAnd, line, std::move(left), parse_not());
  return left;
}

ExpressionPtr Parser::parse_not() {
  if (!current().is_name("not")) return parse_compare();
  const Nesting nesting(*this);
  auto node = make(Expression::Kind::kNot, next().line);
  node->operands.push_back(parse_not());
  return finish(std::move(node));
}

ExpressionPtr Parser::parse_compare() {
  auto node = make(Expression::Kind::kCompare, current().line);
  node->operands.push_back(parse_sum());
  const auto comparison = [&]() -> bool {
    static constexpr std::pair<std::string_view, Operator> kSigns[] = {
        {"==", Operator::kEqual}, {"!=", Operator::kNotEqual},     {"<=", Operator::kLessEqual},
        {"<", Operator::kLess},   {">=", Operator::kGreaterEqual}, {">", Operator::kGreater},
    };
    for (const auto& [sign, op] : kSigns) {
      if (!skip(sign)) continue;
      node->operators.push_back(op);
      return true;
    }
    const bool negated = current().is_name("not") && following().is_name("in");
    if (negated) next();
    if (!skip_name("in")) return false;
    node->operators.push_back(negated ? Operator::kNotIn : Operator::kIn);
    return true;
  };
  while (comparison())
    node->operands.push_back(parse_sum());
  if (node->operators.empty()) return std::move(node->operands.front());
  return finish(std::move(node));
}

ExpressionPtr Parser::parse_sum() {
  const int line = current().line;
  ExpressionPtr left = parse_concatenation();
  while (current().is("+") || current().is("-")) {
    const Operator op = next().text == "+" ? Operator::kAdd : Operator::kSubtract;
    left = binary(Expression::Kind::kArithmetic, line, std::move(left), parse_concatenation());
    left->operators.push_back(op);
  }
  return left;
}

ExpressionPtr Parser::parse_concatenation() {
  auto node = make(Expression::Kind::kConcatenate, current().line);
  node->operands.push_back(parse_product());
  while (skip("~"))
    node->operands.push_back(parse_product());
  if (node->operands.size() == 1) return std::move(node->operands.front());
  return finish(std::move(node));
}

ExpressionPtr Parser::parse_product() {
  const int line = current().line;
  ExpressionPtr left = parse_power();
  const auto op = [&]() -> std::optional<Operator> {
    if (skip("*")) return Operator::kMultiply;
    if (skip("/")) return Operator::kDivide;
    if (skip("//")) return Operator::kFloorDivide;
    if (skip("%")) return Operator::kModulo;
    return std::nullopt;
  };
  while (const auto found = op()) {
    left = binary(Expression::Kind::kArithmetic, line, std::move(left), parse_power());
    left->operators.push_back(*found);
  }
  return left;
}

ExpressionPtr Parser::parse_power() {
  const int line = current().line;
  ExpressionPtr left = parse_unary();
  while (skip("**")) {
    left = binary(Expression::Kind::kArithmetic, line, std::move(left), parse_unary());
    left->operators.push_back(Operator::kPower);
  }
  return left;
}

ExpressionPtr Parser::parse_unary(bool with_filters) {
  const Nesting nesting(*this);
  ExpressionPtr node;
  if (current().is("-") || current().is("+")) {
    const Token sign = next();
    node = make(sign.text == "-" ? Expression::Kind::kNegative : Expression::Kind::kPositive,
                sign.line);
    node->operands.push_back(parse_unary(false));
    node = finish(std::move(node));
  } else {
    node = parse_primary();
  }
  node = parse_postfix(std::move(node));
  return with_filters ? parse_filters_and_tests(std::move(node)) : std::move(node);
}

ExpressionPtr Parser::parse_postfix(ExpressionPtr node) {
  while (true) {
    if (current().is(".") || current().is("[")) {
      node = parse_subscript(std::move(node));
    } else if (current().is("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr Parser::parse_filters_and_tests(ExpressionPtr node) {
  while (true) {
    if (current().is("|")) {
      node = parse_filters(std::move(node));
    } else if (current().is_name("is")) {
      node = parse_test(std::move(node));
    } else if (current().is("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr Parser::parse_primary() {
  const Token& token = current();
  if (token.type == Type::kName) return parse_name();
  if (token.type == Type::kInteger || token.type == Type::kFloat) return parse_number();
  if (token.type == Type::kString) {
    auto node = make(Expression::Kind::kConstant, token.line);
    std::string text;
    while (current().type == Type::kString)
      text += next().text;
    node->constant = Value::constant(std::move(text));
    return node;
  }
  if (token.is("[")) return parse_list();
  if (token.is("{")) return parse_dict();
  if (!token.is("(")) fail(fmt::format("unexpected '{}'", token.description()));
  next();
  ExpressionPtr node = parse_tuple(/*conditional=*/true, /*parenthesized=*/true);
  expect(")");
  return node;
}

ExpressionPtr Parser::parse_name() {
  const Token token = next();
  auto node = make(Expression::Kind::kConstant, token.line);
  const std::string& name = token.text;
  if (name == "true" || name == "True" || name == "false" || name == "False") {
    node->constant = Value::boolean(name == "true" || name == "True");
    return node;
  }
  if (name == "none" || name == "None") return node;
  for (MacroDefinition* macro : macros_) {
    macro->uses_caller |= name == "caller";
    macro->uses_varargs |= name == "varargs";
    macro->uses_kwargs |= name == "kwargs";
  }
  node->kind = Expression::Kind::kName;
  node->name = name;
  node->symbol = symbol(name);
  return node;
}

ExpressionPtr Parser::parse_number() {
  const Token token = next();
  auto node = make(Expression::Kind::kConstant, token.line);
  if (token.type == Type::kFloat) {
    node->constant = Value::real(std::strtod(token.text.c_str(), nullptr));
    return node;
  }
  std::string_view digits = token.text;
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0') {
    const char kind = static_cast<char>(digits[1] | 0x20);
    base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
    if (base != 10) digits.remove_prefix(2);
  }
  std::int64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (result.ec != std::errc()) fail(fmt::format("the integer {} is too large", token.text));
  node->constant = Value::integer(value);
  return node;
}

ExpressionPtr Parser::parse_list() {
  auto node = make(Expression::Kind::kList, next().line);
  while (!current().is("]")) {
    if (!node->operands.empty()) expect(",");
    if (current().is("]")) break;
    node->operands.push_back(parse_expression());
  }
  expect("]");
  return finish(std::move(node));
}

ExpressionPtr Parser::parse_dict() {
  auto node = make(Expression::Kind::kDict, next().line);
  while (!current().is("}")) {
    if (!node->operands.empty()) expect(",");
    if (current().is("}")) break;
    node->operands.push_back(parse_expression());
    expect(":");
    node->operands.push_back(parse_expression());
  }
  expect("}");
  return finish(std::move(node));
}

ExpressionPtr Parser::parse_subscript(ExpressionPtr node) {
  const Token token = next();
  if (token.text == "[") return parse_brackets(std::move(node));
  if (current().type == Type::kInteger) {
    return binary(Expression::Kind::kItem, token.line, std::move(node), parse_number());
  }
  auto attribute = make(Expression::Kind::kAttribute, token.line);
  attribute->name = expect_any_name();
  attribute->constant = Value::constant(attribute->name);
  attribute->operands.push_back(std::move(node));
  return finish(std::move(attribute));
}

ExpressionPtr Parser::parse_brackets(ExpressionPtr node) {
  const int line = current().line;
  std::vector<ExpressionPtr> parts;
  const auto part_ends = [&] { return current().is("]") || current().is(":"); };
  parts.push_back(part_ends() ? nullptr : parse_expression());
  const bool slice = current().is(":");
  while (skip(":")) {
    if (parts.size() == 3) fail("a slice has at most three parts");
    parts.push_back(part_ends() ? nullptr : parse_expression());
  }
  if (!slice && current().is(",")) {  // x[a, b] looks up a tuple
    auto tuple = make(Expression::Kind::kTuple, line);
    tuple->operands.push_back(std::move(parts.front()));
    while (skip(","))
      tuple->operands.push_back(parse_expression());
    parts.front() = finish(std::move(tuple));
  }
  if (parts.front() == nullptr && !slice) fail("expected subscript expression");
  expect("]");
  if (!slice)
    return binary(Expression::Kind::kItem, line, std::move(node), std::move(parts.front()));
  parts.resize(3);
  auto result = make(Expression::Kind::kSlice, line);
  result->operands.push_back(std::move(node));
  for (auto& part : parts)
    result->operands.push_back(std::move(part));
  return finish(std::move(result));
}

void Parser::parse_arguments(Expression& call) {
  const int line = current().line;
  expect("(");
  const auto ensure = [&](bool valid) {
    if (!valid) fail("invalid syntax for function call expression", line);
  };
  bool first = true;
  while (!current().is(")")) {
    if (!first) {
      expect(",");
      if (current().is(")")) break;
    }
    first = false;
    if (skip("*")) {
      ensure(call.star == nullptr && call.star_star == nullptr);
      call.star = parse_expression();
    } else if (skip("**")) {
      ensure(call.star_star == nullptr);
      call.star_star = parse_expression();
    } else if (current().type == Type::kName && following().is("=")) {
      ensure(call.star_star == nullptr);
      std::string name = next().text;
      next();
      call.named.emplace_back(std::move(name), parse_expression());
    } else {
      ensure(call.star == nullptr && call.star_star == nullptr && call.named.empty());
      call.operands.push_back(parse_expression());
    }
  }
  expect(")");
}

ExpressionPtr Parser::parse_call(ExpressionPtr node) {
  auto call = make(Expression::Kind::kCall, current().line);
  call->operands.push_back(std::move(node));
  parse_arguments(*call);
  return finish(std::move(call));
}

std::string Parser::parse_dotted_name() {
  std::string name = expect_any_name();
  while (skip(".")) {
    name += '.';
    name += expect_any_name();
  }
  return name;
}

// A filter's name and arguments, after the bar.
ExpressionPtr Parser::parse_filter(ExpressionPtr node) {
  auto filter = make(Expression::Kind::kFilter, current().line);
  filter->name = parse_dotted_name();
  filter->filter = find_filter(filter->name);
  if (filter->filter == nullptr && conditionals_ == 0) {
    unknown_.push_back({fmt::format("No filter named '{}'.", filter->name),
                        "use one of Jinja's own filters", filter->line});
  }
  filter->operands.push_back(std::move(node));
  if (current().is("(")) parse_arguments(*filter);
  return finish(std::move(filter));
}

ExpressionPtr Parser::parse_filters(ExpressionPtr node) {
  while (skip("|"))
    node = parse_filter(std::move(node));
  return node;
}

ExpressionPtr Parser::parse_test(ExpressionPtr node) {
  const int line = next().line;
  const bool negated = skip_name("not");
  auto test = make(Expression::Kind::kTest, line);
  test->name = parse_dotted_name();
  test->test = find_test(test->name);
  if (test->test == nullptr && conditionals_ == 0) {
    unknown_.push_back(
        {fmt::format("No test named '{}'.", test->name), "use one of Jinja's own tests", line});
  }
  test->operands.push_back(std::move(node));
  const Token& token = current();
  const bool starts_value = token.type == Type::kString || token.type == Type::kInteger ||
                            token.type == Type::kFloat || token.is("[") || token.is("{") ||
                            (token.type == Type::kName && token.text != "else" &&
                             token.text != "or" && token.text != "and");
  if (token.is("(")) {
    parse_arguments(*test);
  } else if (starts_value) {
    if (token.is_name("is")) fail("You cannot chain multiple tests with is");
    test->operands.push_back(parse_postfix(parse_primary()));
  }
  ExpressionPtr result = finish(std::move(test));
  if (!negated) return result;
  auto inverse = make(Expression::Kind::kNot, line);
  inverse->operands.push_back(std::move(result));
  return finish(std::move(inverse));
}

}  // namespace antisd::inline text::jinja
