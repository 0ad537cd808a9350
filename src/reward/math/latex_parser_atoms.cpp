// The leaves of the grammar: numbers, symbols, words and units, brackets.
#include <algorithm>
#include <cctype>
#include <utility>

#include "reward/math/latex_names.h"
#include "reward/math/latex_parser.h"

namespace antisd::inline reward::math {
namespace {

int decimals_of(std::string_view digits) {
  const std::size_t point = digits.find('.');
  if (point == std::string_view::npos) return -1;
  std::size_t end = point + 1;
  while (end < digits.size() && std::isdigit(static_cast<unsigned char>(digits[end])))
    ++end;
  return static_cast<int>(end - point - 1);
}

bool is_constant(std::string_view name) {
  return name == "e" || name == "i" || name == "pi" || name == "infinity";
}

bool names_a_function(std::string_view name) {
  return name == "f" || name == "g" || name == "h" || name == "F" || name == "G" || name == "H" ||
         name == "Gamma" || name == "zeta" || name == "Phi";
}

long base_of(std::string_view word) {
  static constexpr std::string_view kWords[] = {
      "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"};
  for (std::size_t k = 0; k < std::size(kWords); ++k)
    if (word == kWords[k]) return static_cast<long>(k) + 2;
  return 0;
}

}  // namespace

Expression Parser::parse_atom() {
  switch (peek().kind) {
    case TokenKind::kNumber:
      return parse_number();
    case TokenKind::kFraction: {
      const Token token = take();  // "1/2": one digit above
      return arena_.number(Rational(token.text[0] - '0') /
                           Rational(std::stol(token.text.substr(2))));
    }
    case TokenKind::kSymbol:
      return parse_symbol();
    case TokenKind::kWord:
      return parse_word();
    case TokenKind::kCommand:
      return parse_command();
    case TokenKind::kOpen:
      return parse_brackets();
    case TokenKind::kOperator:
      if (at(TokenKind::kOperator, "|")) return parse_bars();
      if (accept(TokenKind::kOperator, "%")) return parse_atom();
      break;
    default:
      break;
  }
  throw ParseError("cannot read '" + peek().text + "'");
}

Expression Parser::parse_number() {
  if (!at(TokenKind::kNumber)) throw ParseError("a number is missing");
  const std::string digits = take().text;
  if (at(TokenKind::kCommand, "overline") || at(TokenKind::kCommand, "bar") ||
      at(TokenKind::kCommand, "dot")) {
    if (digits.find('.') != std::string::npos) return parse_repeating(digits);
  }
  const bool letters = std::any_of(digits.begin(), digits.end(), [](char c) { return c >= 'A'; });
  if (letters && at(TokenKind::kOperator, "_"))
    return parse_based(arena_.make(Op::kWord, {}, digits), digits);
  std::optional<Rational> value = Rational::parse_decimal(digits);
  if (!value) throw ParseError("'" + digits + "' is not a number");
  Expression number = arena_.number(std::move(*value), decimals_of(digits));
  if (at(TokenKind::kOperator, "_")) return parse_based(number, digits);
  return number;
}

// 0.1\overline{6} = 0.1 + 0.06 / (1 - 10^-1)
Expression Parser::parse_repeating(std::string_view digits) {
  ++position_;
  const bool braced = accept(TokenKind::kOpen, "{");
  const std::string period = at(TokenKind::kNumber) ? take().text : "";
  if (braced && !accept(TokenKind::kClose, "}"))
    throw ParseError("a repeating decimal without an end");
  const auto repeated = Rational::parse_integer(period);
  const auto head = Rational::parse_decimal(std::string(digits) == "." ? "0" : digits);
  if (!repeated || !head) throw ParseError("a repeating decimal without digits");
  const long places = decimals_of(digits), length = static_cast<long>(period.size());
  const Rational tail = *repeated / (Rational(10).power(length) - Rational(1));
  return arena_.number(*head + tail * Rational(10).power(-places));
}

// 1011_2, 413_{5}, 111_{(2)}, 21_{\text{three}}
Expression Parser::parse_based(Expression number, std::string_view digits) {
  const std::size_t start = position_++;
  const std::string name = script_name();
  long base = base_of(name);
  if (base == 0 && !name.empty() && name.size() <= 2 &&
      std::isdigit(static_cast<unsigned char>(name[0])))
    base = std::stol(name);
  if (base < 2 || base > 36) {
    position_ = start;
    return number;
  }
  const auto value = Rational::parse_integer(digits, static_cast<int>(base));
  if (!value) throw ParseError("a digit does not belong to the base");
  return arena_.make(Op::kCall, {arena_.number(*value), number}, "based");
}

// The text of a script as a name: x_{12} -> "12". Brackets and spaces are ignored.
std::string Parser::script_name() {
  std::string name;
  int level = 0;
  do {
    const Token token = take();
    if (token.kind == TokenKind::kOpen)
      ++level;
    else if (token.kind == TokenKind::kClose)
      --level;
    else
      name += token.text;
    budget_.spend();
  } while (level > 0);
  return name;
}

Expression Parser::parse_symbol() {
  std::string name = take().text;
  name = parse_primes(name)->name;
  if (at(TokenKind::kOperator, "_")) {
    ++position_;
    const std::string index = script_name();
    // C_5^2 and C_5^{2}: a binomial in some countries.
    if (name == "C" && at(TokenKind::kOperator, "^") && !index.empty() &&
        std::isdigit(static_cast<unsigned char>(index[0]))) {
      ++position_;
      Expression n = arena_.number(Rational::parse_decimal(index).value_or(Rational(0)));
      Expression k = parse_script();
      return arena_.make(Op::kCall, {n, k}, "binom");
    }
    name += "_" + index;
    name = parse_primes(name)->name;
  }
  Expression symbol = arena_.symbol(name);
  return at(TokenKind::kOpen, "(") ? parse_call(symbol) : symbol;
}

// y', y'' and y^{\prime}
Expression Parser::parse_primes(std::string name) {
  while (true) {
    if (accept(TokenKind::kOperator, "'")) {
      name += "'";
    } else if (at(TokenKind::kOperator, "^") && peek(1).kind == TokenKind::kOperator &&
               peek(1).text == "'") {
      position_ += 2;
      name += "'";
    } else if (at(TokenKind::kOperator, "^") && peek(1).text == "{" &&
               peek(2).kind == TokenKind::kOperator && peek(2).text == "'") {
      position_ += 2;
      while (accept(TokenKind::kOperator, "'"))
        name += "'";
      if (!accept(TokenKind::kClose, "}")) throw ParseError("a prime in a power");
    } else {
      return arena_.symbol(name);
    }
  }
}

// f(x), y(t), P(A, B) are calls; n(n+1), x(2 + y) are products.
Expression Parser::parse_call(Expression symbol) {
  if (is_constant(symbol->name)) return symbol;
  bool call = names_a_function(symbol->name.substr(0, symbol->name.find_first_of("_'")));
  if (!call) {
    const Token& inner = peek(1);
    const bool single = (inner.kind == TokenKind::kSymbol || inner.kind == TokenKind::kNumber) &&
                        inner.text != symbol->name && peek(2).kind == TokenKind::kClose;
    int level = 0;
    bool comma = false;
    for (std::size_t k = 0; k < 200; ++k) {
      const Token& token = peek(k);
      if (token.kind == TokenKind::kOpen) ++level;
      if (token.kind == TokenKind::kClose && --level == 0) break;
      if (token.kind == TokenKind::kEnd) break;
      comma |= token.kind == TokenKind::kComma && level == 1;
    }
    call = single || comma;
  }
  if (!call) return symbol;
  Expression inner = parse_brackets();
  std::vector<Expression> args = inner->op == Op::kTuple ? inner->args : std::vector{inner};
  if (symbol->name == "C" && args.size() == 2)
    return arena_.make(Op::kCall, std::move(args), "binom");
  return arena_.make(Op::kCall, std::move(args), "function " + symbol->name);
}

Expression Parser::parse_word() {
  std::string name = take().text;
  while (at(TokenKind::kWord)) {
    name += ' ';
    name += take().text;
  }
  if (name == "all real numbers" || name == "all reals" || name == "real numbers")
    return arena_.symbol("Reals");
  return arena_.make(Op::kWord, {}, name);
}

// Words after a quantity: 5 cm, 440 \text{ cm}^2, 3 m/s, 2 million dollars.
Expression Parser::parse_units(Expression quantity) {
  std::string unit;
  std::string power;
  while (at(TokenKind::kWord)) {
    const std::string word = take().text;
    if (word == "million" || word == "billion" || word == "thousand" || word == "trillion" ||
        word == "hundred") {
      const long zeros = word == "hundred"    ? 2
                         : word == "thousand" ? 3
                         : word == "million"  ? 6
                         : word == "billion"  ? 9
                                              : 12;
      quantity = arena_.make(Op::kMultiply, {quantity, arena_.number(Rational(10).power(zeros))});
      continue;
    }
    if (word == "square" || word == "sq") {
      power.assign("^2");
    } else if (word == "cubic") {
      power.assign("^3");
    } else {
      if (!unit.empty()) unit += ' ';
      unit += word;
    }
    if (at(TokenKind::kOperator, "^")) {
      ++position_;
      power.assign(1, '^');
      power += script_name();
    }
    if (at(TokenKind::kOperator, "/") && peek(1).kind == TokenKind::kWord) {
      ++position_;
      unit += '/';
      unit += take().text;
    }
  }
  if (unit.empty() && power.empty()) return quantity;
  return arena_.make(Op::kUnit, {quantity}, unit + power);
}

Expression Parser::parse_bars() {
  ++position_;
  ++bars_;
  Expression inner = parse_set();
  --bars_;
  if (!accept(TokenKind::kOperator, "|")) throw ParseError("an absolute value without an end");
  return arena_.make(Op::kCall, {inner}, "abs");
}

Expression Parser::parse_brackets() {
  const Nesting nesting(*this);
  const int bars = std::exchange(bars_, 0), rows = std::exchange(rows_, 0);
  Expression result = nullptr;
  if (at(TokenKind::kOpen, "{")) {
    result = parse_group();
  } else if (at(TokenKind::kOpen, "s")) {
    result = parse_set_braces();
  } else {
    const char open = take().text[0];
    std::vector<Expression> items;
    while (!at(TokenKind::kClose)) {
      items.push_back(parse_relation());
      if (!at(TokenKind::kComma) && !at(TokenKind::kClose))
        throw ParseError("a bracket without an end");
      if (at(TokenKind::kComma)) ++position_;
    }
    const char close = take().text[0];
    if (items.empty() || close == '}') throw ParseError("an empty bracket");
    if (items.size() == 1 && (open == '[') != (close == ']') && close != '.')
      throw ParseError("brackets that do not match");
    if (open == 'f' || open == 'c')
      result = arena_.make(Op::kCall, {items[0]}, open == 'f' ? "floor" : "ceil");
    else if (items.size() == 1 && items[0]->op != Op::kList)
      result = items[0];
    else
      result = arena_.tuple(std::move(items), open, close);
  }
  bars_ = bars, rows_ = rows;
  return result;
}

// { ... }: a LaTeX group, or a set if it contains a list.
Expression Parser::parse_group() {
  ++position_;
  std::vector<Expression> items;
  while (!at(TokenKind::kClose)) {
    items.push_back(parse_relation());
    if (!at(TokenKind::kComma) && !at(TokenKind::kClose))
      throw ParseError("a group without an end");
    if (at(TokenKind::kComma)) ++position_;
  }
  ++position_;
  if (items.size() == 1) return items[0];
  if (items.empty()) return starts_factor() ? parse_power() : arena_.make(Op::kSet, {});
  return arena_.make(Op::kSet, std::move(items));
}

// \{a, b\} or \{x | condition\}
Expression Parser::parse_set_braces() {
  ++position_;
  std::vector<std::size_t> bars;
  int level = 0;
  for (std::size_t k = position_; k < tokens_.size(); ++k) {
    const Token& token = tokens_[k];
    if (token.kind == TokenKind::kOpen) ++level;
    if (token.kind == TokenKind::kClose && --level < 0) break;
    if (level == 0 && token.kind == TokenKind::kOperator &&
        (token.text == "|" || token.text == ":"))
      bars.push_back(k);
    budget_.spend();
  }
  if (bars.size() % 2 == 1) tokens_[bars[0]].text.assign(1, 'B');
  std::vector<Expression> items;
  Expression builder = nullptr;
  while (!at(TokenKind::kClose) && !at(TokenKind::kEnd)) {
    items.push_back(parse_relation());
    if (accept(TokenKind::kOperator, "B")) {
      builder = items.back();
      items.clear();
    } else if (!at(TokenKind::kClose) && !at(TokenKind::kComma)) {
      throw ParseError("a set without an end");
    }
    if (at(TokenKind::kComma)) ++position_;
  }
  if (!at(TokenKind::kClose)) throw ParseError("a set without an end");
  ++position_;
  if (builder == nullptr) return arena_.make(Op::kSet, std::move(items));
  if (items.empty()) throw ParseError("a set without its condition");
  return arena_.make(Op::kBuilder, {builder, as_list(std::move(items), Op::kList)});
}

}  // namespace antisd::inline reward::math
