#include "text/jinja/interpreter.h"

#include <algorithm>

#include <fmt/format.h>

#include "text/jinja/depth.h"
#include "text/jinja/filters.h"
#include "text/jinja/globals.h"
#include "text/jinja/loop.h"
#include "text/jinja/print.h"

namespace antisd::inline text::jinja {
namespace {

class Macro : public Object {
 public:
  Macro(Interpreter& interpreter, std::shared_ptr<const MacroDefinition> definition, ScopePtr scope)
      : interpreter_(interpreter),
        definition_(std::move(definition)),
        scope_(std::move(scope)),
        charge_(&interpreter.heap(), sizeof(*this)) {}

  std::string type_name() const override { return "Macro"; }
  Value call(Runtime&, Arguments& arguments) override {
    return interpreter_.call_macro(*definition_, scope_, arguments);
  }
  bool attribute(Runtime& runtime, const std::string& name, Value& value) override {
    if (name != "name") return false;
    value = runtime.text(definition_->name);
    return true;
  }
  void release() override { scope_.reset(); }

 private:
  Interpreter& interpreter_;
  std::shared_ptr<const MacroDefinition> definition_;
  ScopePtr scope_;
  Charge charge_;
};

template <typename Type>
class Restore {
 public:
  Restore(Type& variable, Type value) : variable_(variable), before_(std::move(variable)) {
    variable_ = std::move(value);
  }
  ~Restore() { variable_ = std::move(before_); }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

 private:
  Type& variable_;
  Type before_;
};

ScopePtr inner(const ScopePtr& parent) {
  auto scope = std::make_shared<Scope>();
  scope->parent = parent;
  return scope;
}

}  // namespace

void Scope::set(int symbol, Value value) {
  for (auto& [known, slot] : variables) {
    if (known != symbol) continue;
    slot = std::move(value);
    return;
  }
  variables.emplace_back(symbol, std::move(value));
}

Interpreter::Interpreter(const Program& program, const Json& variables, const Limits& limits)
    : Runtime(limits),
      program_(program),
      variables_(variables),
      output_limit_(limits.output_bytes),
      root_(program.symbols.size()),
      known_(program.symbols.size(), Known::kUnresolved) {}

Interpreter::~Interpreter() {
  for (const auto& object : adopted_)
    object->release();
}

std::string Interpreter::run() {
  execute(program_.body);
  return std::move(output_);
}

void Interpreter::adopt(std::shared_ptr<Object> object) {
  adopted_.push_back(std::move(object));
}

Interpreter::Flow Interpreter::execute(const Body& body) {
  for (const Statement& statement : body) {
    const Flow flow = execute(statement);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute(const Statement& statement) {
  const Depth depth(*this);
  spend();
  line_ = statement.line;
  switch (statement.kind) {
    case Statement::Kind::kText:
      append(statement.text);
      return Flow::kNext;
    case Statement::Kind::kPrint:
      print(evaluate(*statement.expression));
      return Flow::kNext;
    case Statement::Kind::kFor:
      return execute_for(statement);
    case Statement::Kind::kIf:
      return execute_if(statement);
    case Statement::Kind::kSet:
      assign(statement.targets.front(), evaluate(*statement.expression));
      return Flow::kNext;
    case Statement::Kind::kSetBlock:
      execute_set_block(statement);
      return Flow::kNext;
    case Statement::Kind::kWith:
      return execute_with(statement);
    case Statement::Kind::kMacro:
      set(statement.symbol, make_macro(statement.macro));
      return Flow::kNext;
    case Statement::Kind::kCall:
      execute_call(statement);
      return Flow::kNext;
    case Statement::Kind::kFilterBlock: {
      const Value text = capture([&] { execute_scope(statement.body); });
      print(evaluate_filter(*statement.expression, &text));
      return Flow::kNext;
    }
    case Statement::Kind::kScope:
      return execute_scope(statement.body);
    case Statement::Kind::kBreak:
      return Flow::kBreak;
    case Statement::Kind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute_scope(const Body& body) {
  const Restore scope(scope_, inner(scope_));
  return execute(body);
}

Interpreter::Flow Interpreter::execute_for(const Statement& statement) {
  const Value items = evaluate(*statement.expression);
  return run_loop(statement, items, scope_, 0);
}

Interpreter::Flow Interpreter::run_loop(const Statement& statement, const Value& items,
                                        ScopePtr around, int depth) {
  const Target& target = statement.targets.front();
  Loop::Accepts accepts;
  if (statement.condition != nullptr) {
    accepts = [&](const Value& item) {
      const Restore scope(scope_, inner(around));
      assign(target, item);
      return truthy(evaluate(*statement.condition));
    };
  }
  Loop::Recurse recurse;
  if (statement.recursive) {
    recurse = [this, &statement, around](const Value& children, int level) {
      return capture([&] { run_loop(statement, children, around, level); });
    };
  }
  const bool sized = !accepts && has_length(items);
  const auto loop =
      object<Loop>(elements(*this, items), sized, depth, std::move(accepts), std::move(recurse));
  struct Release {
    Loop& loop;
    ~Release() { loop.release(); }
  } const release{*loop};

  bool any = false;
  const Restore scope(scope_, inner(around));
  while (auto item = loop->next()) {
    any = true;
    spend();
    // A macro may have captured the scope of the previous iteration.
    if (scope_.use_count() > 1) {
      scope_ = inner(around);
    } else {
      scope_->variables.clear();
    }
    assign(target, *item);
    scope_->set(program_.loop, Value(std::static_pointer_cast<Object>(loop)));
    if (execute(statement.body) == Flow::kBreak) break;
  }
  if (any) return Flow::kNext;
  scope_ = inner(around);
  return execute(statement.otherwise);
}

Interpreter::Flow Interpreter::execute_if(const Statement& statement) {
  for (std::size_t i = 0; i < statement.conditions.size(); ++i) {
    if (truthy(evaluate(*statement.conditions[i]))) return execute(statement.branches[i]);
  }
  return execute(statement.otherwise);
}

Interpreter::Flow Interpreter::execute_with(const Statement& statement) {
  std::vector<Value> values;
  for (const auto& value : statement.conditions)
    values.push_back(evaluate(*value));
  const Restore scope(scope_, inner(scope_));
  for (std::size_t i = 0; i < values.size(); ++i)
    assign(statement.targets[i], values[i]);
  return execute(statement.body);
}

void Interpreter::execute_set_block(const Statement& statement) {
  Value text = capture([&] { execute_scope(statement.body); });
  if (statement.expression != nullptr) text = evaluate_filter(*statement.expression, &text);
  assign(statement.targets.front(), text);
}

void Interpreter::execute_call(const Statement& statement) {
  const Expression& node = *statement.expression;
  const Value callee = evaluate(*node.operands.front());
  Arguments arguments = evaluate_arguments(node);
  arguments.named.emplace_back("caller", make_macro(statement.macro));
  print(call(callee, arguments));
}

Value Interpreter::make_macro(const std::shared_ptr<const MacroDefinition>& definition) {
  const auto macro = object<Macro>(*this, definition, scope_);
  adopt(macro);
  return Value(std::shared_ptr<Object>(macro));
}

Value Interpreter::call(const Value& callee, Arguments& arguments) {
  const Depth depth(*this);
  spend();
  require_defined(callee);
  if (!callee.is_object()) fail(fmt::format("'{}' object is not callable", callee.type_name()));
  const Value kept = callee;  // the call may overwrite the variable that holds it
  return kept.object().call(*this, arguments);
}

Value Interpreter::call_macro(const MacroDefinition& macro, const ScopePtr& around,
                              Arguments& arguments) {
  const ScopePtr scope = inner(around);
  auto& named = arguments.named;
  // Removes a named argument, or leaves `value` unchanged.
  const auto take = [&](const std::string& name, Value& value) {
    const auto found = std::find_if(named.begin(), named.end(),
                                    [&](const auto& entry) { return entry.first == name; });
    if (found == named.end()) return false;
    value = found->second;
    named.erase(found);
    return true;
  };
  const std::size_t count = macro.parameters.size();
  std::vector<const Parameter*> missing;
  bool has_caller_parameter = false;
  for (std::size_t i = 0; i < count; ++i) {
    const Parameter& parameter = macro.parameters[i];
    has_caller_parameter |= parameter.symbol == program_.caller;
    Value given;
    if (i < arguments.positional.size()) {
      given = arguments.positional[i];
    } else if (!take(parameter.name, given)) {
      missing.push_back(&parameter);
      given = undefined_hint(fmt::format("parameter '{}' was not provided", parameter.name));
    }
    scope->set(parameter.symbol, std::move(given));
  }
  if (macro.uses_caller && !has_caller_parameter) {
    Value caller = undefined_hint("No caller defined");
    take("caller", caller);
    scope->set(program_.caller, std::move(caller));
  }
  if (macro.uses_kwargs) {
    const auto rest = new_dict();
    for (const auto& [name, value] : named)
      rest->set(*this, text(name), value);
    scope->set(program_.kwargs, Value(std::shared_ptr<const Dict>(rest)));
  } else if (!named.empty()) {
    fail(named.front().first == "caller"
             ? fmt::format("macro '{}' was invoked with a caller, but uses none", macro.name)
             : fmt::format("macro '{}' takes no keyword argument '{}'", macro.name,
                           named.front().first));
  }
  if (macro.uses_varargs) {
    std::vector<Value> rest;
    for (std::size_t i = count; i < arguments.positional.size(); ++i) {
      rest.push_back(arguments.positional[i]);
    }
    scope->set(program_.varargs, tuple(std::move(rest)));
  } else if (arguments.positional.size() > count) {
    fail(fmt::format("macro '{}' takes not more than {} argument(s)", macro.name, count));
  }
  const Restore inside(scope_, ScopePtr(scope));
  for (const Parameter* parameter : missing) {
    if (parameter->otherwise != nullptr)
      scope->set(parameter->symbol, evaluate(*parameter->otherwise));
  }
  const int line = line_;
  const Value result = capture([&] { execute(macro.body); });
  line_ = line;
  return result;
}

template <typename Action>
Value Interpreter::capture(Action&& action) {
  std::string buffer;
  const std::size_t before = written_;
  {
    const Restore out(out_, &buffer);
    action();
  }
  written_ = before;
  return text(std::move(buffer));
}

void Interpreter::append(std::string_view text) {
  spend_bytes(text.size());
  if (text.size() > output_limit_ - written_) {
    throw Failure{fmt::format("the template writes more than {} MiB", output_limit_ >> 20),
                  "shorten the conversation, or fix the loop"};
  }
  written_ += text.size();
  *out_ += text;
}

void Interpreter::print(const Value& value) {
  if (value.is_text()) {
    append(value.text());
  } else if (!value.is_undefined()) {
    append(str(*this, value));
  }
}

void Interpreter::assign(const Target& target, const Value& value) {
  if (!target.is_tuple) {
    if (target.attribute.empty()) {
      set(target.symbol, value);
      return;
    }
    const Value* owner = find(target.symbol);
    auto* space = owner != nullptr && owner->is_object()
                      ? dynamic_cast<Namespace*>(&owner->object())
                      : nullptr;
    if (space == nullptr) fail("cannot assign attribute on non-namespace object");
    space->set(*this, target.attribute, value);
    return;
  }
  require_defined(value);
  const auto items = elements(*this, value);
  if (items->items.size() != target.parts.size()) {
    fail(fmt::format("cannot unpack {} values into {} names", items->items.size(),
                     target.parts.size()));
  }
  for (std::size_t i = 0; i < target.parts.size(); ++i)
    assign(target.parts[i], items->items[i]);
}

const Value* Interpreter::find(int symbol) {
  for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->parent.get()) {
    for (const auto& [known, value] : scope->variables) {
      if (known == symbol) return &value;
    }
  }
  const auto at = static_cast<std::size_t>(symbol);
  if (known_[at] == Known::kUnresolved) {
    const std::string& name = program_.symbols[at];
    known_[at] = Known::kMissing;
    if (const auto given = variables_.find(name); given != variables_.end()) {
      root_[at] = from_json(*this, *given);
      known_[at] = Known::kSet;
    } else if (auto function = global(*this, name)) {
      root_[at] = std::move(*function);
      known_[at] = Known::kSet;
    }
  }
  return known_[at] == Known::kSet ? &root_[at] : nullptr;
}

Value Interpreter::look_up(const Expression& name) {
  const Value* found = find(name.symbol);
  return found != nullptr ? *found : undefined_name(name.name);
}

void Interpreter::set(int symbol, Value value) {
  if (scope_ != nullptr) {
    scope_->set(symbol, std::move(value));
    return;
  }
  known_[static_cast<std::size_t>(symbol)] = Known::kSet;
  root_[static_cast<std::size_t>(symbol)] = std::move(value);
}

}  // namespace antisd::inline text::jinja
