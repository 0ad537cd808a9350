// Tokens -> expression tree. The grammar is lenient: braces may be missing, products are implicit,
// functions take their argument with or without brackets, unknown names are symbols.
//
//   answer    = relation { "," relation }
//   relation  = set { ("=" | "<" | ...) set }
//   set       = sum { (cup | cap | setminus) sum }
//   sum       = [sign] product { sign product }
//   product   = power { ("*" | "/" | ":" | nothing) power }
//   power     = atom { "^" script | "_" script | "!" | "%" | "'" | degree }
#pragma once

#include <stdexcept>
#include <vector>

#include "reward/math/expression.h"
#include "reward/math/latex_lexer.h"

namespace antisd::inline reward::math {

class ParseError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Parser {
 public:
  Parser(Arena& arena, std::vector<Token> tokens, Budget& budget)
      : arena_(arena), tokens_(std::move(tokens)), budget_(budget) {}

  // The whole answer; throws ParseError if the text is not an expression.
  Expression parse_answer();

 private:
  // Counts one level of recursion while it lives.
  struct Nesting {
    explicit Nesting(Parser& parser) : parser(parser) {
      parser.budget_.spend();
      if (++parser.depth_ > 6 * kMaxDepth) {
        --parser.depth_;
        throw BudgetExceeded("the answer is nested too deeply");
      }
    }
    ~Nesting() { --parser.depth_; }
    Parser& parser;
  };
  struct Scripts {
    Expression lower = nullptr, upper = nullptr;
  };

  const Token& peek(std::size_t ahead = 0) const;
  bool at(TokenKind kind, std::string_view text = {}) const;
  bool accept(TokenKind kind, std::string_view text);
  Token take();

  Expression parse_relation();
  Expression parse_set();
  Expression parse_sum();
  Expression parse_product();
  Expression parse_unary();
  Expression parse_power();
  Expression parse_postfix(Expression base);
  Expression parse_script();
  Expression parse_superscript(Expression base);
  Expression parse_atom();
  Expression parse_number();
  Expression parse_repeating(std::string_view digits);
  Expression parse_based(Expression number, std::string_view digits);
  Expression parse_symbol();
  Expression parse_subscript(std::string name);
  Expression parse_primes(std::string name);
  Expression parse_call(Expression symbol);
  Expression parse_word();
  Expression parse_units(Expression quantity);
  Expression parse_brackets();
  Expression parse_set_braces();
  Expression parse_group();
  Expression parse_bars();
  Expression parse_command();
  Expression parse_function(const std::string& name);
  Expression parse_big_operator(const std::string& name);
  Expression parse_argument();
  Expression parse_frac_part();
  Expression parse_frac();
  Expression parse_sqrt();
  Expression parse_environment();
  Expression parse_accent(const std::string& name);
  Scripts parse_scripts();
  std::string script_name();
  bool starts_factor() const;
  bool is_mixed_tail(Expression whole) const;
  Expression as_list(std::vector<Expression> items, Op op);
  std::vector<Expression> grouped(std::vector<Expression> items,
                                  const std::vector<std::size_t>& alternatives);

  Arena& arena_;
  std::vector<Token> tokens_;
  Budget& budget_;
  std::size_t position_ = 0;
  int depth_ = 0;
  int bars_ = 0;  // open absolute values
  int rows_ = 0;  // open environments, where & and \\ separate
};

// Lexes and parses; `digits_grouped` as LexerOptions::group_digits.
Expression parse_expression(Arena& arena, std::string_view text, Budget& budget,
                            const LexerOptions& options = {});

}  // namespace antisd::inline reward::math
