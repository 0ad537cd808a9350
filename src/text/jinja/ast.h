// A parsed template. One node type for expressions and one for statements; the comment of each kind
// lists its fields.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace antisd::inline text::jinja {

using Filter = Value (*)(Runtime& runtime, const Value& value, Arguments& arguments);
using Test = bool (*)(Runtime& runtime, const Value& value, Arguments& arguments);

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

enum class Operator {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

struct Expression {
  enum class Kind {
    kConstant,     // constant
    kName,         // name, symbol
    kList,         // operands
    kTuple,        // operands
    kDict,         // operands: key, value, key, value ...
    kAttribute,    // operands[0].name; constant is the name as a value
    kItem,         // operands[0][operands[1]]
    kSlice,        // operands[0][operands[1]:operands[2]:operands[3]], null if absent
    kCall,         // operands[0](operands[1...], named, *star, **star_star)
    kFilter,       // operands[0] | name(operands[1...], ...); filter null if name is unknown
    kTest,         // operands[0] is name(operands[1...], ...); test null if name is unknown
    kNot,          // operands[0]
    kNegative,     // operands[0]
    kPositive,     // operands[0]
    kAnd,          // operands[0], operands[1]
    kOr,           // operands[0], operands[1]
    kArithmetic,   // operands[0] operators[0] operands[1]
    kConcatenate,  // operands joined as strings
    kCompare,      // operands[0] operators[0] operands[1] operators[1] operands[2] ...
    kConditional,  // operands[0] if operands[1] else operands[2] (may be null)
  };
  Kind kind;
  int line = 0;
  int depth = 1;
  int symbol = -1;
  std::string name;
  Value constant;
  std::vector<ExpressionPtr> operands;
  std::vector<Operator> operators;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr star;
  ExpressionPtr star_star;
  Filter filter = nullptr;
  Test test = nullptr;
};

// An assignment target: a name, an attribute of a namespace, or a tuple of these.
struct Target {
  int symbol = -1;
  std::string name;
  std::string attribute;      // of the namespace `symbol`; empty for a plain name
  std::vector<Target> parts;  // of a tuple
  bool is_tuple = false;
};

struct Parameter {
  int symbol;
  std::string name;
  ExpressionPtr otherwise;  // null: none
};

struct Statement;
using Body = std::vector<Statement>;

// A macro, or the body of a call block, which is an unnamed macro.
struct MacroDefinition {
  std::string name;
  std::vector<Parameter> parameters;
  bool uses_caller = false;
  bool uses_varargs = false;
  bool uses_kwargs = false;
  Body body;
};

struct Statement {
  enum class Kind {
    kText,         // text
    kPrint,        // expression
    kFor,          // targets[0] in expression if condition: body, otherwise; recursive
    kIf,           // conditions[i]: branches[i]; otherwise
    kSet,          // targets[0] = expression
    kSetBlock,     // targets[0] = body | expression (filters; may be null)
    kWith,         // targets[i] = conditions[i]; body
    kMacro,        // macro, symbol
    kCall,         // expression (a call) with macro as its caller
    kFilterBlock,  // expression (filters) of body
    kScope,        // body: generation and block tags
    kBreak,
    kContinue,
  };
  Kind kind;
  int line = 0;
  int symbol = -1;
  bool recursive = false;
  std::string text;
  ExpressionPtr expression;
  ExpressionPtr condition;
  std::vector<ExpressionPtr> conditions;
  std::vector<Body> branches;
  std::vector<Target> targets;
  std::shared_ptr<const MacroDefinition> macro;
  Body body;
  Body otherwise;
};

struct Program {
  Body body;
  std::vector<std::string> symbols;  // every name, by symbol
  int loop = -1;                     // symbols of names with a special meaning
  int caller = -1;
  int varargs = -1;
  int kwargs = -1;
};

Program parse(std::string_view source);

}  // namespace antisd::inline text::jinja
