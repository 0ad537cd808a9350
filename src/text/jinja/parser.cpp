#include "text/jinja/parser.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "text/jinja/nesting.h"

namespace antisd::inline text::jinja {
namespace {

using Type = Token::Type;

}  // namespace

Parser::Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

Program Parser::run() {
  program_.loop = symbol("loop");
  program_.caller = symbol("caller");
  program_.varargs = symbol("varargs");
  program_.kwargs = symbol("kwargs");
  program_.body = parse_body({});
  if (!unknown_.empty()) throw unknown_.front();
  return std::move(program_);
}

Token Parser::next() {
  const Token& token = tokens_[at_];
  if (token.type != Type::kEnd) ++at_;
  return token;
}

bool Parser::skip(std::string_view op) {
  if (!current().is(op)) return false;
  ++at_;
  return true;
}

bool Parser::skip_name(std::string_view name) {
  if (!current().is_name(name)) return false;
  ++at_;
  return true;
}

void Parser::expect(std::string_view op) {
  if (!skip(op)) fail_token(std::string(op));
}

void Parser::expect_name(std::string_view name) {
  if (!skip_name(name)) fail_token(std::string(name));
}

void Parser::expect(Type type) {
  if (current().type != type) fail_token(Token{type, "", 0}.description());
  next();
}

std::string Parser::expect_any_name() {
  if (current().type != Type::kName) fail_token("name");
  return next().text;
}

bool Parser::at_end_of_tag() const {
  return current().type == Type::kBlockEnd || current().type == Type::kVariableEnd ||
         current().type == Type::kEnd;
}

void Parser::fail(const std::string& problem, int line) const {
  throw Failure{problem, "fix the template's syntax", line != 0 ? line : current().line};
}

void Parser::fail_token(const std::string& expected) const {
  fail(fmt::format("expected token '{}', got '{}'", expected, current().description()));
}

int Parser::symbol(const std::string& name) {
  const auto [entry, fresh] = symbols_.try_emplace(name, static_cast<int>(symbols_.size()));
  if (fresh) program_.symbols.push_back(name);
  return entry->second;
}

Statement Parser::make_statement(Statement::Kind kind) const {
  Statement statement;
  statement.kind = kind;
  statement.line = current().line;
  return statement;
}

// Statements up to a tag in `ends`, which becomes the current token.
Body Parser::parse_body(const Names& ends) {
  const Nesting nesting(*this);
  Body body;
  while (current().type != Type::kEnd) {
    if (current().type == Type::kData) {
      Statement statement = make_statement(Statement::Kind::kText);
      statement.text = next().text;
      body.push_back(std::move(statement));
    } else if (current().type == Type::kVariableBegin) {
      Statement statement = make_statement(Statement::Kind::kPrint);
      next();
      statement.expression = parse_tuple();
      expect(Type::kVariableEnd);
      body.push_back(std::move(statement));
    } else {
      expect(Type::kBlockBegin);
      const bool ended = current().type == Type::kName &&
                         std::find(ends.begin(), ends.end(), current().text) != ends.end();
      if (ended) return body;
      body.push_back(parse_statement());
      expect(Type::kBlockEnd);
    }
  }
  if (!ends.empty()) {
    fail(fmt::format("Unexpected end of template; looking for '{}' of the block '{}'",
                     fmt::join(ends, "' or '"), open_tags_.back()));
  }
  return body;
}

Body Parser::parse_block(const Names& ends) {
  skip(":");
  expect(Type::kBlockEnd);
  return parse_body(ends);
}

std::string Parser::end_of_block() {
  return next().text;
}

Statement Parser::parse_statement() {
  if (current().type != Type::kName) fail("tag name expected");
  const Token tag = current();
  open_tags_.push_back(tag.text);
  const auto parsed = [&]() -> Statement {
    if (tag.text == "for") return parse_for();
    if (tag.text == "if") return parse_if();
    if (tag.text == "set") return parse_set();
    if (tag.text == "with") return parse_with();
    if (tag.text == "macro") return parse_macro();
    if (tag.text == "call") return parse_call_block();
    if (tag.text == "filter") return parse_filter_block();
    if (tag.text == "print") return parse_print();
    if (tag.text == "block") return parse_named_block();
    if (tag.text == "generation") return parse_generation();
    if (tag.text == "break") return parse_loop_control(Statement::Kind::kBreak);
    if (tag.text == "continue") return parse_loop_control(Statement::Kind::kContinue);
    open_tags_.pop_back();
    fail_unknown_tag(tag);
  };
  Statement statement = parsed();
  open_tags_.pop_back();
  return statement;
}

void Parser::fail_unknown_tag(const Token& tag) const {
  static constexpr std::string_view kUnsupported[] = {"include", "import", "from", "extends",
                                                      "autoescape"};
  if (std::find(std::begin(kUnsupported), std::end(kUnsupported), tag.text) !=
      std::end(kUnsupported)) {
    fail(fmt::format("the tag '{}' is not supported in chat templates", tag.text), tag.line);
  }
  fail(open_tags_.empty()
           ? fmt::format("Encountered unknown tag '{}'.", tag.text)
           : fmt::format("Encountered unknown tag '{}'. The innermost block that needs to be "
                         "closed is '{}'.",
                         tag.text, open_tags_.back()),
       tag.line);
}

Statement Parser::parse_for() {
  Statement statement = make_statement(Statement::Kind::kFor);
  next();
  statement.targets.push_back(parse_target(false, true));
  expect_name("in");
  statement.expression = parse_tuple(/*conditional=*/false);
  if (skip_name("if")) statement.condition = parse_expression();
  statement.recursive = skip_name("recursive");
  ++loops_;
  statement.body = parse_block({"endfor", "else"});
  --loops_;
  if (end_of_block() == "else") {
    statement.otherwise = parse_block({"endfor"});
    end_of_block();
  }
  return statement;
}

Statement Parser::parse_if() {
  Statement statement = make_statement(Statement::Kind::kIf);
  next();
  ++conditionals_;
  while (true) {
    statement.conditions.push_back(parse_tuple(/*conditional=*/false));
    statement.branches.push_back(parse_block({"elif", "else", "endif"}));
    const std::string end = end_of_block();
    if (end == "elif") continue;
    if (end == "else") {
      statement.otherwise = parse_block({"endif"});
      end_of_block();
    }
    break;
  }
  --conditionals_;
  return statement;
}

Statement Parser::parse_set() {
  Statement statement = make_statement(Statement::Kind::kSet);
  next();
  statement.targets.push_back(parse_target(true, false));
  if (skip("=")) {
    statement.expression = parse_tuple();
    return statement;
  }
  statement.kind = Statement::Kind::kSetBlock;
  statement.expression = parse_filters(nullptr);
  statement.body = parse_block({"endset"});
  end_of_block();
  return statement;
}

Statement Parser::parse_with() {
  Statement statement = make_statement(Statement::Kind::kWith);
  next();
  while (current().type != Type::kBlockEnd) {
    if (!statement.targets.empty()) expect(",");
    statement.targets.push_back(parse_target(false, false));
    expect("=");
    statement.conditions.push_back(parse_expression());
  }
  statement.body = parse_block({"endwith"});
  end_of_block();
  return statement;
}

void Parser::parse_signature(MacroDefinition& macro) {
  expect("(");
  while (!current().is(")")) {
    if (!macro.parameters.empty()) expect(",");
    Parameter parameter;
    parameter.name = expect_any_name();
    parameter.symbol = symbol(parameter.name);
    if (skip("=")) {
      parameter.otherwise = parse_expression();
    } else if (!macro.parameters.empty() && macro.parameters.back().otherwise != nullptr) {
      fail("non-default argument follows default argument");
    }
    macro.parameters.push_back(std::move(parameter));
  }
  expect(")");
}

void Parser::parse_macro_body(MacroDefinition& macro, const char* end) {
  macros_.push_back(&macro);
  const int loops = std::exchange(loops_, 0);
  macro.body = parse_block({end});
  end_of_block();
  loops_ = loops;
  macros_.pop_back();
}

Statement Parser::parse_macro() {
  Statement statement = make_statement(Statement::Kind::kMacro);
  next();
  auto macro = std::make_shared<MacroDefinition>();
  macro->name = expect_any_name();
  statement.symbol = symbol(macro->name);
  parse_signature(*macro);
  parse_macro_body(*macro, "endmacro");
  statement.macro = std::move(macro);
  return statement;
}

Statement Parser::parse_call_block() {
  Statement statement = make_statement(Statement::Kind::kCall);
  next();
  auto macro = std::make_shared<MacroDefinition>();
  macro->name = "caller";
  if (current().is("(")) parse_signature(*macro);
  statement.expression = parse_expression();
  if (statement.expression->kind != Expression::Kind::kCall) {
    fail("expected call", statement.line);
  }
  parse_macro_body(*macro, "endcall");
  statement.macro = std::move(macro);
  return statement;
}

Statement Parser::parse_filter_block() {
  Statement statement = make_statement(Statement::Kind::kFilterBlock);
  next();
  statement.expression = parse_filters(parse_filter(nullptr));
  statement.body = parse_block({"endfilter"});
  end_of_block();
  return statement;
}

Statement Parser::parse_print() {
  Statement statement = make_statement(Statement::Kind::kScope);
  next();
  while (current().type != Type::kBlockEnd) {
    if (!statement.body.empty()) expect(",");
    Statement print = make_statement(Statement::Kind::kPrint);
    print.expression = parse_expression();
    statement.body.push_back(std::move(print));
  }
  return statement;
}

Statement Parser::parse_named_block() {
  Statement statement = make_statement(Statement::Kind::kScope);
  next();
  const std::string name = expect_any_name();
  skip_name("scoped");
  statement.body = parse_block({"endblock"});
  end_of_block();
  skip_name(name);
  return statement;
}

// What the model writes, between `generation` and `endgeneration`; matters only for a mask.
Statement Parser::parse_generation() {
  Statement statement = make_statement(Statement::Kind::kScope);
  next();
  const int loops = std::exchange(loops_, 0);
  statement.body = parse_block({"endgeneration"});
  loops_ = loops;
  end_of_block();
  return statement;
}

Statement Parser::parse_loop_control(Statement::Kind kind) {
  Statement statement = make_statement(kind);
  const Token tag = next();
  if (loops_ == 0) fail(fmt::format("'{}' outside loop", tag.text), tag.line);
  return statement;
}

Target Parser::parse_target(bool with_namespace, bool ends_with_in) {
  const Nesting nesting(*this);
  const auto ended = [&] {
    return at_end_of_tag() || current().is(")") || (ends_with_in && current().is_name("in"));
  };
  Target tuple;
  while (true) {
    if (!tuple.parts.empty()) expect(",");
    if (ended()) break;
    tuple.parts.push_back(parse_target_part(with_namespace));
    if (!current().is(",")) break;
    tuple.is_tuple = true;
  }
  if (tuple.parts.empty()) fail_token("name");
  if (tuple.is_tuple) return tuple;
  Target only = std::move(tuple.parts.front());
  return only;
}

Target Parser::parse_target_part(bool with_namespace) {
  if (skip("(")) {
    Target target = parse_target(with_namespace, false);
    expect(")");
    return target;
  }
  static constexpr std::string_view kReserved[] = {"true", "false", "none",
                                                   "True", "False", "None"};
  Target target;
  const int line = current().line;
  target.name = expect_any_name();
  if (std::find(std::begin(kReserved), std::end(kReserved), target.name) != std::end(kReserved)) {
    fail(fmt::format("can't assign to '{}'", target.name), line);
  }
  target.symbol = symbol(target.name);
  if (with_namespace && skip(".")) target.attribute = expect_any_name();
  return target;
}

Program parse(std::string_view source) {
  return Parser(tokenize(source)).run();
}

}  // namespace antisd::inline text::jinja
