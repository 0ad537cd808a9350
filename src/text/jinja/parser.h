// Tokens -> Program, by recursive descent with Jinja's grammar. Depth is limited, so that neither
// the parser nor code that walks its trees can run out of stack.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"

namespace antisd::inline text::jinja {

inline constexpr int kMaxNesting = 240;    // of blocks and, three per level, brackets in the source
inline constexpr int kMaxTreeDepth = 200;  // of one expression, including long chains of operators

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens);
  Program run();

 private:
  using Names = std::vector<std::string_view>;
  class Nesting;

  // ---- tokens ----
  const Token& current() const { return tokens_[at_]; }
  const Token& following() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token next();
  bool skip(std::string_view op);
  bool skip_name(std::string_view name);
  void expect(std::string_view op);
  void expect_name(std::string_view name);
  void expect(Token::Type type);
  std::string expect_any_name();
  bool at_end_of_tag() const;
  [[noreturn]] void fail(const std::string& problem, int line = 0) const;
  [[noreturn]] void fail_token(const std::string& expected) const;
  int symbol(const std::string& name);

  // ---- statements ----
  Body parse_body(const Names& ends);
  Body parse_block(const Names& ends);
  std::string end_of_block();
  Statement parse_statement();
  Statement parse_for();
  Statement parse_if();
  Statement parse_set();
  Statement parse_with();
  Statement parse_macro();
  Statement parse_call_block();
  Statement parse_filter_block();
  Statement parse_print();
  Statement parse_named_block();
  Statement parse_generation();
  Statement parse_loop_control(Statement::Kind kind);
  [[noreturn]] void fail_unknown_tag(const Token& tag) const;
  void parse_signature(MacroDefinition& macro);
  void parse_macro_body(MacroDefinition& macro, const char* end);
  Target parse_target(bool with_namespace, bool ends_with_in);
  Target parse_target_part(bool with_namespace);
  Statement make_statement(Statement::Kind kind) const;

  // ---- expressions, weakest binding first ----
  ExpressionPtr parse_tuple(bool conditional = true, bool parenthesized = false);
  ExpressionPtr parse_expression(bool conditional = true);
  ExpressionPtr parse_conditional();
  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_compare();
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concatenation();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_unary(bool with_filters = true);
  ExpressionPtr parse_postfix(ExpressionPtr node);
  ExpressionPtr parse_filters_and_tests(ExpressionPtr node);
  ExpressionPtr parse_primary();
  ExpressionPtr parse_name();
  ExpressionPtr parse_number();
  ExpressionPtr parse_list();
  ExpressionPtr parse_dict();
  ExpressionPtr parse_subscript(ExpressionPtr node);
  ExpressionPtr parse_brackets(ExpressionPtr node);
  ExpressionPtr parse_call(ExpressionPtr node);
  ExpressionPtr parse_filter(ExpressionPtr node);
  ExpressionPtr parse_filters(ExpressionPtr node);
  ExpressionPtr parse_test(ExpressionPtr node);
  void parse_arguments(Expression& call);
  std::string parse_dotted_name();

  ExpressionPtr make(Expression::Kind kind, int line) const;
  ExpressionPtr binary(Expression::Kind kind, int line, ExpressionPtr left, ExpressionPtr right);
  ExpressionPtr finish(ExpressionPtr node) const;  // sets and checks the depth

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int nesting_ = 0;
  int loops_ = 0;         // enclosing for blocks, within the innermost macro
  int conditionals_ = 0;  // enclosing if blocks
  std::vector<std::string> open_tags_;
  std::vector<MacroDefinition*> macros_;  // enclosing macros
  std::vector<Failure> unknown_;          // unknown filters and tests outside any condition
  std::unordered_map<std::string, int> symbols_;
  Program program_;
};

}  // namespace antisd::inline text::jinja
