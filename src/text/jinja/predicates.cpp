#include "text/jinja/predicates.h"

#include <unordered_map>

#include <fmt/format.h>

#include "text/jinja/filters.h"
#include "text/jinja/methods.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"

namespace antisd::inline text::jinja {
namespace {

// A test without arguments.
template <bool (*kHolds)(const Value&)>
bool plain(Runtime&, const Value& value, Arguments& arguments) {
  const Bound bound("test", arguments, {});
  return kHolds(value);
}

bool is_defined(const Value& value) {
  return !value.is_undefined();
}
bool is_undefined(const Value& value) {
  return value.is_undefined();
}
bool is_none(const Value& value) {
  return value.is_none();
}
bool is_boolean(const Value& value) {
  return value.is_bool();
}
bool is_true(const Value& value) {
  return value.is_bool() && value.as_bool();
}
bool is_false(const Value& value) {
  return value.is_bool() && !value.as_bool();
}
bool is_integer(const Value& value) {
  return value.is_int();
}
bool is_float(const Value& value) {
  return value.is_float();
}
bool is_number(const Value& value) {
  return value.is_number();
}
bool is_string(const Value& value) {
  return value.is_text();
}
bool is_mapping(const Value& value) {
  return value.is_dict();
}
bool is_sequence(const Value& value) {
  if (!value.is_list()) return has_length(value);
  const List::Kind kind = value.list().kind;
  return value.list().is_tuple() || kind == List::Kind::kList || kind == List::Kind::kRange;
}
bool is_callable(const Value& value) {
  return value.is_undefined() || (value.is_object() && value.object().callable());
}
bool is_escaped(const Value&) {
  return false;
}

template <Operator kOperator>
bool comparison(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("comparison", arguments, {"other"}, 1);
  return compare(runtime, kOperator, value, bound.at(0));
}

bool remainder_is(Runtime& runtime, const Value& value, const Value& divisor, int expected) {
  return equal(runtime, arithmetic(runtime, Operator::kModulo, value, divisor),
               Value::integer(expected));
}

bool odd(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("odd", arguments, {});
  return remainder_is(runtime, value, Value::integer(2), 1);
}

bool even(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("even", arguments, {});
  return remainder_is(runtime, value, Value::integer(2), 0);
}

bool divisible_by(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("divisibleby", arguments, {"num"}, 1);
  return remainder_is(runtime, value, bound.at(0), 0);
}

bool same_as(Runtime&, const Value& value, Arguments& arguments) {
  const Bound bound("sameas", arguments, {"other"}, 1);
  return identical(value, bound.at(0));
}

bool is_in(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("in", arguments, {"seq"}, 1);
  return contains(runtime, bound.at(0), value);
}

template <const char* kMethod>
bool letter_case(Runtime& runtime, const Value& value, Arguments& arguments) {
  return call_method(runtime, runtime.text(str(runtime, value)), kMethod, arguments).as_bool();
}
constexpr char kIsLower[] = "islower";
constexpr char kIsUpper[] = "isupper";

bool is_filter(Runtime&, const Value& value, Arguments& arguments) {
  const Bound bound("filter", arguments, {});
  return value.is_text() && find_filter(value.text()) != nullptr;
}

bool is_test(Runtime&, const Value& value, Arguments& arguments) {
  const Bound bound("test", arguments, {});
  return value.is_text() && find_test(value.text()) != nullptr;
}

const std::unordered_map<std::string, Test>& tests() {
  static const std::unordered_map<std::string, Test> kTests = {
      {"defined", plain<is_defined>},
      {"undefined", plain<is_undefined>},
      {"none", plain<is_none>},
      {"boolean", plain<is_boolean>},
      {"true", plain<is_true>},
      {"false", plain<is_false>},
      {"integer", plain<is_integer>},
      {"float", plain<is_float>},
      {"number", plain<is_number>},
      {"string", plain<is_string>},
      {"mapping", plain<is_mapping>},
      {"sequence", plain<is_sequence>},
      {"iterable", plain<iterable>},
      {"callable", plain<is_callable>},
      {"escaped", plain<is_escaped>},
      {"odd", odd},
      {"even", even},
      {"divisibleby", divisible_by},
      {"sameas", same_as},
      {"in", is_in},
      {"lower", letter_case<kIsLower>},
      {"upper", letter_case<kIsUpper>},
      {"filter", is_filter},
      {"test", is_test},
      {"==", comparison<Operator::kEqual>},
      {"eq", comparison<Operator::kEqual>},
      {"equalto", comparison<Operator::kEqual>},
      {"!=", comparison<Operator::kNotEqual>},
      {"ne", comparison<Operator::kNotEqual>},
      {">", comparison<Operator::kGreater>},
      {"gt", comparison<Operator::kGreater>},
      {"greaterthan", comparison<Operator::kGreater>},
      {">=", comparison<Operator::kGreaterEqual>},
      {"ge", comparison<Operator::kGreaterEqual>},
      {"<", comparison<Operator::kLess>},
      {"lt", comparison<Operator::kLess>},
      {"lessthan", comparison<Operator::kLess>},
      {"<=", comparison<Operator::kLessEqual>},
      {"le", comparison<Operator::kLessEqual>},
  };
  return kTests;
}

}  // namespace

Test find_test(const std::string& name) {
  const auto found = tests().find(name);
  return found == tests().end() ? nullptr : found->second;
}

bool apply_test(Runtime& runtime, const std::string& name, const Value& value,
                Arguments& arguments) {
  const Test test = find_test(name);
  if (test == nullptr) {
    throw Failure{fmt::format("No test named '{}'.", name), "use one of Jinja's own tests"};
  }
  return test(runtime, value, arguments);
}

}  // namespace antisd::inline text::jinja
