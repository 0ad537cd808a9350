// Renders a Program. One object per render; the Program is shared and immutable.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/runtime.h"

namespace antisd::inline text::jinja {

// Variables of a for body, a macro or a with block. The interpreter has the outermost ones.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<int, Value>> variables;

  void set(int symbol, Value value);
};
using ScopePtr = std::shared_ptr<Scope>;

class Interpreter : public Runtime {
 public:
  Interpreter(const Program& program, const Json& variables, const Limits& limits);
  ~Interpreter() override;

  std::string run();
  int line() const { return line_; }

  Value call(const Value& callee, Arguments& arguments) override;
  void adopt(std::shared_ptr<Object> object) override;
  Value call_macro(const MacroDefinition& macro, const ScopePtr& scope, Arguments& arguments);

 private:
  enum class Flow { kNext, kBreak, kContinue };
  class Depth;

  // ---- statements ----
  Flow execute(const Body& body);
  Flow execute(const Statement& statement);
  Flow execute_for(const Statement& statement);
  Flow execute_if(const Statement& statement);
  Flow execute_with(const Statement& statement);
  void execute_set_block(const Statement& statement);
  void execute_call(const Statement& statement);
  Flow execute_scope(const Body& body);
  Flow run_loop(const Statement& statement, const Value& items, ScopePtr around, int depth);
  Value make_macro(const std::shared_ptr<const MacroDefinition>& macro);
  // The output of `action` as a value instead of appending it to the result.
  template <typename Action>
  Value capture(Action&& action);
  void print(const Value& value);
  void append(std::string_view text);
  void assign(const Target& target, const Value& value);

  // ---- variables ----
  Value look_up(const Expression& name);
  const Value* find(int symbol);
  void set(int symbol, Value value);

  // ---- expressions ----
  Value evaluate(const Expression& node);
  Value evaluate_call(const Expression& node);
  Value evaluate_attribute(const Expression& node);
  Value evaluate_filter(const Expression& node, const Value* input);
  Value evaluate_test(const Expression& node);
  Value evaluate_compare(const Expression& node);
  Value evaluate_conditional(const Expression& node);
  Value evaluate_binary(const Expression& node);
  Value evaluate_slice(const Expression& node);
  Value evaluate_container(const Expression& node);
  Value evaluate_concatenation(const Expression& node);
  Arguments evaluate_arguments(const Expression& node);

  enum class Known : char { kUnresolved, kSet, kMissing };

  const Program& program_;
  const Json& variables_;
  const std::size_t output_limit_;
  std::vector<Value> root_;   // by symbol
  std::vector<Known> known_;  // of root_
  ScopePtr scope_;            // null: the root
  std::string output_;
  std::string* out_ = &output_;
  std::size_t written_ = 0;  // bytes in all outputs being captured
  int depth_ = 0;
  int line_ = 1;
  std::vector<std::shared_ptr<Object>> adopted_;
};

}  // namespace antisd::inline text::jinja
