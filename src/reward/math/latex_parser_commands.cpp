// Commands with arguments: fractions, roots, functions, sums, matrices, accents.
#include <utility>

#include "reward/math/latex_parser.h"

namespace antisd::inline reward::math {

Expression Parser::parse_command() {
  const Token token = take();
  const std::string& name = token.text;
  if (name == "frac") return parse_frac();
  if (name == "sqrt") return parse_sqrt();
  if (name == "cbrt")
    return arena_.make(Op::kPower, {parse_argument(), arena_.number(Rational(1) / Rational(3))});
  if (name == "binom") {
    Expression first = parse_argument();
    if (first->op == Op::kTuple && first->args.size() == 2)
      return arena_.make(Op::kCall, first->args, name);
    return arena_.make(Op::kCall, {first, parse_argument()}, name);
  }
  if (name == "emptyset") return arena_.make(Op::kSet, {});
  if (name == "begin") return parse_environment();
  if (name == "overline" || name == "hat" || name == "bar" || name == "tilde" || name == "dot" ||
      name == "ddot" || name == "widehat" || name == "widetilde")
    return parse_accent(name);
  if (name == "sum" || name == "prod" || name == "int" || name == "lim" || name == "limsup" ||
      name == "liminf" || name == "sup" || name == "inf")
    return parse_big_operator(name);
  if (name == "over" || name == "choose" || name == "end" || name == "right")
    throw ParseError("'" + name + "' in a strange place");
  return parse_function(name == "pmod" || name == "bmod" ? "mod" : name);
}

// One braced group, bracket or atom.
Expression Parser::parse_argument() {
  const Nesting nesting(*this);
  return at(TokenKind::kOpen) ? parse_brackets() : parse_atom();
}

// Without braces, \frac12 takes one digit per part.
Expression Parser::parse_frac_part() {
  if (!at(TokenKind::kNumber))
    return at(TokenKind::kOperator, "-") ? parse_unary() : parse_argument();
  Token& token = tokens_[position_];
  const std::string digit = token.text.substr(0, 1);
  token.text.erase(0, 1);
  token.space_before = false;
  if (token.text.empty()) ++position_;
  const auto value = Rational::parse_integer(digit);
  if (!value) throw ParseError("a fraction without digits");
  return arena_.number(*value);
}

Expression Parser::parse_frac() {
  Expression above = parse_frac_part();
  // The command may be followed by a slash:
  // icefrac 1/2.
  accept(TokenKind::kOperator, "/");
  Expression below = parse_frac_part();
  return arena_.make(Op::kDivide, {above, below});
}

Expression Parser::parse_sqrt() {
  Expression degree = nullptr;
  if (at(TokenKind::kOpen, "[")) {
    ++position_;
    degree = parse_sum();
    if (!accept(TokenKind::kClose, "]")) throw ParseError("a root's degree without an end");
  }
  Expression radicand = at(TokenKind::kOperator, "-") ? parse_unary() : parse_argument();
  Expression exponent = degree == nullptr ? arena_.number(Rational(1) / Rational(2))
                                          : arena_.make(Op::kDivide, {arena_.number(1), degree});
  return arena_.make(Op::kPower, {radicand, exponent});
}

Parser::Scripts Parser::parse_scripts() {
  Scripts scripts;
  while (true) {
    if (scripts.upper == nullptr && accept(TokenKind::kOperator, "^"))
      scripts.upper = parse_script();
    else if (scripts.lower == nullptr && accept(TokenKind::kOperator, "_"))
      scripts.lower = parse_script();
    else
      return scripts;
  }
}

Expression Parser::parse_function(const std::string& name) {
  const Scripts scripts = parse_scripts();
  std::vector<Expression> args;
  if (at(TokenKind::kOpen)) {
    Expression inner = parse_brackets();
    if (inner->op == Op::kTuple || inner->op == Op::kSet)
      args = inner->args;
    else
      args = {inner};
  } else if (at(TokenKind::kOperator, "|")) {
    args = {parse_power()};
  } else {
    const bool negative = accept(TokenKind::kOperator, "-");
    std::vector<Expression> factors = {parse_power()};
    while ((at(TokenKind::kSymbol) || at(TokenKind::kNumber) || at(TokenKind::kCommand, "frac") ||
            at(TokenKind::kCommand, "sqrt")) &&
           !(at(TokenKind::kNumber) && factors.back()->op == Op::kNumber))
      factors.push_back(parse_power());
    Expression argument = factors.size() == 1 ? factors[0] : arena_.make(Op::kMultiply, factors);
    args = {negative ? arena_.make(Op::kNegate, {argument}) : argument};
  }
  if (args.empty()) throw ParseError("a function without its argument");  // \sin\{\}
  if (scripts.lower != nullptr) args.push_back(scripts.lower);
  if (scripts.upper == nullptr) return arena_.make(Op::kCall, std::move(args), name);
  const bool inverse = scripts.upper->op == Op::kNegate &&
                       scripts.upper->args[0]->op == Op::kNumber &&
                       scripts.upper->args[0]->value == Rational(1);
  if (inverse && (name.starts_with("sin") || name.starts_with("cos") || name.starts_with("tan") ||
                  name.starts_with("cot") || name.starts_with("sec") || name.starts_with("csc")))
    return arena_.make(Op::kCall, std::move(args), "arc" + name);
  return arena_.make(Op::kPower, {arena_.make(Op::kCall, std::move(args), name), scripts.upper});
}

// Sums, products, integrals and limits are not evaluated: equal if their parts are.
Expression Parser::parse_big_operator(const std::string& name) {
  std::string lower, upper;
  while (at(TokenKind::kOperator, "_") || at(TokenKind::kOperator, "^")) {
    std::string& limit = take().text == "_" ? lower : upper;
    limit = script_name();
  }
  Expression body = parse_product();
  return arena_.make(Op::kCall, {body}, name + " from " + lower + " to " + upper);
}

Expression Parser::parse_accent(const std::string& name) {
  return parse_postfix(arena_.symbol(name + "(" + script_name() + ")"));
}

Expression Parser::parse_environment() {
  std::string name = script_name();
  if (name == "array") script_name();  // its column specification
  const bool aligned = name.starts_with("align") || name.starts_with("equation") ||
                       name.starts_with("gather") || name == "split";
  std::vector<Expression> rows, cells;
  const int bars = std::exchange(bars_, 0);
  ++rows_;
  while (!at(TokenKind::kCommand, "end")) {
    if (at(TokenKind::kEnd)) throw ParseError("a matrix without an end");
    budget_.spend();
    if (accept(TokenKind::kOperator, "r")) {
      if (!cells.empty()) rows.push_back(arena_.tuple(std::exchange(cells, {}), '(', ')'));
    } else if (at(TokenKind::kOperator, "&") || at(TokenKind::kComma) ||
               at(TokenKind::kSymbol, "hline")) {
      ++position_;
    } else {
      cells.push_back(parse_relation());
    }
  }
  --rows_;
  bars_ = bars;
  ++position_;
  if (at(TokenKind::kOpen, "{")) script_name();
  if (!cells.empty()) rows.push_back(arena_.tuple(std::move(cells), '(', ')'));
  if (rows.empty()) throw ParseError("an empty matrix");
  if (aligned) {
    std::vector<Expression> items;
    for (Expression row : rows)
      items.insert(items.end(), row->args.begin(), row->args.end());
    return as_list(std::move(items), Op::kList);
  }
  Expression matrix = arena_.make(Op::kMatrix, std::move(rows));
  return name.starts_with("vmatrix") ? arena_.make(Op::kCall, {matrix}, "det") : matrix;
}

}  // namespace antisd::inline reward::math
