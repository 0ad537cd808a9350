// The levels of the grammar from the answer down to powers; latex_parser_atoms.cpp has the rest.
#include "reward/math/latex_parser.h"

#include "reward/math/latex_names.h"

namespace antisd::inline reward::math {

const Token& Parser::peek(std::size_t ahead) const {
  return tokens_[std::min(position_ + ahead, tokens_.size() - 1)];
}

bool Parser::at(TokenKind kind, std::string_view text) const {
  const Token& token = peek();
  return token.kind == kind && (text.empty() || token.text == text);
}

bool Parser::accept(TokenKind kind, std::string_view text) {
  if (!at(kind, text)) return false;
  ++position_;
  return true;
}

Token Parser::take() {
  Token token = peek();
  if (token.kind == TokenKind::kEnd) throw ParseError("the answer ends too early");
  ++position_;
  return token;
}

Expression Parser::as_list(std::vector<Expression> items, Op op) {
  if (items.size() == 1 && op == Op::kList) return items[0];
  return arena_.make(op, std::move(items));
}

Expression Parser::parse_answer() {
  std::vector<Expression> items;
  std::vector<std::size_t> alternatives = {0};  // where each begins
  while (!at(TokenKind::kEnd)) {
    items.push_back(parse_relation());
    while (at(TokenKind::kComma) || at(TokenKind::kOperator, "r") ||
           at(TokenKind::kOperator, "&")) {
      const bool next = at(TokenKind::kComma, "or") || at(TokenKind::kComma, ";");
      if (next && alternatives.back() != items.size()) alternatives.push_back(items.size());
      ++position_;
    }
    if (at(TokenKind::kClose, ".")) ++position_;
  }
  if (items.empty()) throw ParseError("the answer is empty");
  if (alternatives.back() == items.size()) alternatives.pop_back();
  return as_list(grouped(std::move(items), alternatives), Op::kList);
}

// "x = 1, y = 2 or x = 3, y = 4" is a list of two pairs.
std::vector<Expression> Parser::grouped(std::vector<Expression> items,
                                        const std::vector<std::size_t>& alternatives) {
  const std::size_t size = items.size() / alternatives.size();
  if (alternatives.size() < 2 || size < 2 || size * alternatives.size() != items.size())
    return items;
  for (std::size_t k = 0; k < alternatives.size(); ++k)
    if (alternatives[k] != k * size) return items;
  for (std::size_t k = 0; k < items.size(); ++k) {
    const auto names = [&](std::size_t item) { return items[item]->args[0]; };
    if (items[k]->op != Op::kRelation || items[k]->name != "=" || names(k)->op != Op::kSymbol ||
        names(k)->name != names(k % size)->name)
      return items;
  }
  std::vector<Expression> groups;
  for (const std::size_t first : alternatives)
    groups.push_back(arena_.tuple({items.begin() + first, items.begin() + first + size}, '(', ')'));
  return groups;
}

Expression Parser::parse_relation() {
  const Nesting nesting(*this);
  std::vector<Expression> sides;
  std::string relations;
  if (at(TokenKind::kRelation))
    sides.push_back(arena_.symbol("x"));  // "> 3"
  else
    sides.push_back(parse_set());
  while (at(TokenKind::kRelation)) {
    relations += take().text;
    if (rows_ > 0) accept(TokenKind::kOperator, "&");
    sides.push_back(parse_set());
  }
  if (relations.empty()) return sides[0];
  return arena_.make(Op::kRelation, std::move(sides), relations);
}

Expression Parser::parse_set() {
  Expression left = parse_sum();
  while (at(TokenKind::kOperator)) {
    Op op;
    if (at(TokenKind::kOperator, "U"))
      op = Op::kUnion;
    else if (at(TokenKind::kOperator, "N"))
      op = Op::kIntersect;
    else if (at(TokenKind::kOperator, "\\"))
      op = Op::kMinus;
    else
      break;
    ++position_;
    std::vector<Expression> parts = {left, parse_sum()};
    while (op == Op::kUnion && accept(TokenKind::kOperator, "U"))
      parts.push_back(parse_sum());
    left = arena_.make(op, std::move(parts));
  }
  return left;
}

Expression Parser::parse_sum() {
  const Nesting nesting(*this);
  std::vector<Expression> terms;
  while (true) {
    budget_.spend();
    if (accept(TokenKind::kOperator, "p"))
      terms.push_back(arena_.make(Op::kPlusMinus, {parse_product()}));
    else if (accept(TokenKind::kOperator, "m"))
      terms.push_back(arena_.make(Op::kPlusMinus, {parse_product()}, "mp"));
    else
      terms.push_back(parse_product());
    if (accept(TokenKind::kOperator, "+")) continue;
    // A minus is left for the product, which takes it as its sign.
    if (at(TokenKind::kOperator, "-") || at(TokenKind::kOperator, "p") ||
        at(TokenKind::kOperator, "m"))
      continue;
    break;
  }
  Expression sum = terms.size() == 1 ? terms[0] : arena_.make(Op::kAdd, std::move(terms));
  for (const auto& [infix, name] : {std::pair{"over", "frac"}, std::pair{"choose", "binom"}})
    if (accept(TokenKind::kCommand, infix)) {
      Expression below = parse_sum();
      sum = std::string_view(name) == "frac" ? arena_.make(Op::kDivide, {sum, below})
                                             : arena_.make(Op::kCall, {sum, below}, name);
    }
  return sum;
}

bool Parser::starts_factor() const {
  const Token& token = peek();
  switch (token.kind) {
    case TokenKind::kNumber:
    case TokenKind::kFraction:
    case TokenKind::kSymbol:
    case TokenKind::kWord:
    case TokenKind::kOpen:
      return true;
    case TokenKind::kCommand:
      return token.text != "over" && token.text != "choose" && token.text != "end" &&
             token.text != "right";
    case TokenKind::kOperator:
      return token.text == "|" && bars_ == 0;
    default:
      return false;
  }
}

bool Parser::is_mixed_tail(Expression whole) const {
  if (whole->op != Op::kNumber || whole->decimals >= 0 || !whole->value.is_integer()) return false;
  if (at(TokenKind::kFraction)) return true;
  const auto integer = [&](std::size_t k) {
    return peek(k).kind == TokenKind::kNumber &&
           peek(k).text.find_first_of(".eE") == std::string::npos;
  };
  // 2 1/2
  if (peek().space_before && integer(0) && peek(1).kind == TokenKind::kOperator &&
      peek(1).text == "/" && integer(2))
    return true;
  if (at(TokenKind::kOpen, "{"))  // 2 {1 \over 2}
    return integer(1) && peek(2).text == "over" && integer(3) && peek(4).text == "}";
  if (!at(TokenKind::kCommand, "frac")) return false;
  // 2\frac{1}{2}, 2\frac12
  if (peek(1).kind == TokenKind::kNumber) return true;
  return peek(1).text == "{" && integer(2) && peek(3).text == "}" &&
         (integer(4) || (peek(4).text == "{" && integer(5) && peek(6).text == "}"));
}

Expression Parser::parse_product() {
  const Nesting nesting(*this);
  bool negative = false;
  while (at(TokenKind::kOperator, "-") || at(TokenKind::kOperator, "+"))
    negative ^= take().text == "-";
  std::vector<Expression> factors;
  const auto fold = [&]() -> Expression {
    return factors.size() == 1 ? factors[0] : arena_.make(Op::kMultiply, factors);
  };
  factors.push_back(parse_power());
  while (true) {
    budget_.spend();
    if (is_mixed_tail(factors.back()) && factors.size() == 1) {
      Expression tail = at(TokenKind::kNumber) ? nullptr : parse_power();
      if (tail == nullptr) {
        Expression above = parse_number();
        ++position_;  // the slash
        Expression below = parse_number();
        if (above->op != Op::kNumber || below->op != Op::kNumber || !(above->value < below->value))
          throw ParseError("a mixed number with an improper fraction");
        tail = arena_.make(Op::kDivide, {above, below});
      }
      factors.back() = parse_postfix(arena_.make(Op::kAdd, {factors.back(), tail}));
    } else if (accept(TokenKind::kOperator, "*")) {
      factors.push_back(parse_unary());
    } else if (accept(TokenKind::kOperator, "/")) {
      Expression below = parse_unary();
      Expression quotient = arena_.make(Op::kDivide, {fold(), below});
      factors.assign(1, quotient);
    } else if (at(TokenKind::kOperator, ":")) {
      std::vector<Expression> parts = {fold()};
      while (accept(TokenKind::kOperator, ":"))
        parts.push_back(parse_unary());
      factors.assign(1, arena_.make(Op::kRatio, std::move(parts)));
    } else if (at(TokenKind::kWord) && factors[0]->op != Op::kWord) {
      Expression quantity = parse_units(fold());
      factors.assign(1, quantity);
    } else if (starts_factor()) {
      factors.push_back(parse_power());
    } else {
      break;
    }
  }
  Expression product = fold();
  return negative ? arena_.make(Op::kNegate, {product}) : product;
}

Expression Parser::parse_unary() {
  const Nesting nesting(*this);
  if (accept(TokenKind::kOperator, "-")) return arena_.make(Op::kNegate, {parse_unary()});
  if (accept(TokenKind::kOperator, "+")) return parse_unary();
  if (accept(TokenKind::kOperator, "p")) return arena_.make(Op::kPlusMinus, {parse_unary()});
  return parse_power();
}

Expression Parser::parse_power() {
  const Nesting nesting(*this);
  return parse_postfix(parse_atom());
}

Expression Parser::parse_postfix(Expression base) {
  while (true) {
    budget_.spend();
    if (at(TokenKind::kOperator, "^")) {
      ++position_;
      base = parse_superscript(base);
    } else if (accept(TokenKind::kOperator, "!")) {
      base = arena_.make(Op::kCall, {base}, "factorial");
    } else if (accept(TokenKind::kOperator, "%")) {
      base = arena_.make(Op::kPercent, {base});
    } else if (accept(TokenKind::kOperator, "o")) {
      base = arena_.make(Op::kDegree, {base});
    } else if (at(TokenKind::kOperator, "'")) {
      ++position_;
      base = arena_.make(Op::kCall, {base}, "prime");
    } else if (at(TokenKind::kOperator, "_") && base->op != Op::kSymbol) {
      ++position_;
      base = arena_.make(Op::kCall, {base, parse_script()}, "subscript");
    } else {
      return base;
    }
  }
}

// After "^": degrees, primes and ordinals look like exponents.
Expression Parser::parse_superscript(Expression base) {
  const bool braced = at(TokenKind::kOpen, "{");
  const Token& inner = peek(braced ? 1 : 0);
  const bool closed = !braced || peek(2).text == "}";
  const auto skip = [&] { position_ += braced ? 3 : 1; };
  if (inner.kind == TokenKind::kOperator && inner.text == "o" && closed) {
    skip();
    return arena_.make(Op::kDegree, {base});
  }
  if (inner.kind == TokenKind::kWord && closed) {  // 4^{\text{th}}
    skip();
    return base;
  }
  if (inner.kind == TokenKind::kOperator && inner.text == "'") {
    if (braced) ++position_;
    std::string primes = "prime";
    ++position_;
    while (accept(TokenKind::kOperator, "'"))
      primes += "prime";
    if (braced) accept(TokenKind::kClose, "}");
    return arena_.make(Op::kCall, {base}, primes);
  }
  if (closed && inner.kind == TokenKind::kOperator &&
      (inner.text == "*" || inner.text == "+" || (braced && inner.text == "-"))) {
    const std::string mark = inner.text;
    skip();
    return arena_.make(Op::kCall, {base}, "mark" + mark);
  }
  Expression exponent = parse_script();
  return arena_.make(Op::kPower, {base, exponent});
}

// One argument of ^ or _: a group, or a signed atom, with further powers to its right.
Expression Parser::parse_script() {
  const Nesting nesting(*this);
  if (accept(TokenKind::kOperator, "-")) return arena_.make(Op::kNegate, {parse_script()});
  if (accept(TokenKind::kOperator, "+")) return parse_script();
  Expression script = at(TokenKind::kOpen, "{") ? parse_group() : parse_atom();
  if (accept(TokenKind::kOperator, "^")) script = arena_.make(Op::kPower, {script, parse_script()});
  while (accept(TokenKind::kOperator, "!"))
    script = arena_.make(Op::kCall, {script}, "factorial");
  return script;
}

Expression parse_expression(Arena& arena, std::string_view text, Budget& budget,
                            const LexerOptions& options) {
  return Parser(arena, lex(text, options), budget).parse_answer();
}

}  // namespace antisd::inline reward::math
