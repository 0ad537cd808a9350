#include "text/jinja/operators.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "core/utf8.h"
#include "text/jinja/format.h"
#include "text/jinja/methods.h"
#include "text/jinja/print.h"
#include "text/jinja/unicode.h"

namespace antisd::inline text::jinja {
namespace {

const char* sign_of(Operator op) {
  switch (op) {
    case Operator::kAdd:
      return "+";
    case Operator::kSubtract:
      return "-";
    case Operator::kMultiply:
      return "*";
    case Operator::kDivide:
      return "/";
    case Operator::kFloorDivide:
      return "//";
    case Operator::kModulo:
      return "%";
    case Operator::kPower:
      return "** or pow()";
    case Operator::kLess:
      return "<";
    case Operator::kLessEqual:
      return "<=";
    case Operator::kGreater:
      return ">";
    case Operator::kGreaterEqual:
      return ">=";
    default:
      return "";
  }
}

[[noreturn]] void fail_overflow() {
  throw Failure{"an integer does not fit into 64 bits", "keep numbers below 2^63"};
}

[[noreturn]] void fail_zero() {
  fail("division by zero");
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) fail_zero();
  if (b == -1) {
    if (a == std::numeric_limits<std::int64_t>::min()) fail_overflow();
    return -a;
  }
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Value integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) fail("0.0 cannot be raised to a negative power");
    return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  if (exponent > 64 && base != 0 && base != 1 && base != -1) fail_overflow();
  if (base == -1) return Value::integer(exponent % 2 == 0 ? 1 : -1);
  if (exponent > 64) exponent = 1;  // 0 or 1 to any power
  std::int64_t result = 1;
  for (std::int64_t i = 0; i < exponent; ++i) {
    if (__builtin_mul_overflow(result, base, &result)) fail_overflow();
  }
  return Value::integer(result);
}

Value integer_arithmetic(Operator op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case Operator::kAdd:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case Operator::kSubtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case Operator::kMultiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case Operator::kDivide:
      if (b == 0) fail_zero();
      return Value::real(static_cast<double>(a) / static_cast<double>(b));
    case Operator::kFloorDivide:
      return Value::integer(floor_divide(a, b));
    case Operator::kModulo:
      if (b == 0) fail_zero();
      if (b == -1) return Value::integer(0);
      result = a % b;
      if (result != 0 && (result < 0) != (b < 0)) result += b;
      break;
    default:
      return integer_power(a, b);
  }
  if (overflow) fail_overflow();
  return Value::integer(result);
}

double float_modulo(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  if ((rest < 0) != (b < 0)) rest += b;
  return rest;
}

double float_floor_divide(double a, double b) {
  const double quotient = (a - float_modulo(a, b)) / b;
  const double floor = std::floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

Value float_arithmetic(Operator op, double a, double b) {
  const bool divides =
      op == Operator::kDivide || op == Operator::kFloorDivide || op == Operator::kModulo;
  if (divides && b == 0) fail_zero();
  switch (op) {
    case Operator::kAdd:
      return Value::real(a + b);
    case Operator::kSubtract:
      return Value::real(a - b);
    case Operator::kMultiply:
      return Value::real(a * b);
    case Operator::kDivide:
      return Value::real(a / b);
    case Operator::kFloorDivide:
      return Value::real(float_floor_divide(a, b));
    case Operator::kModulo:
      return Value::real(float_modulo(a, b));
    default:
      break;
  }
  if (a == 0 && b < 0) fail("0.0 cannot be raised to a negative power");
  if (a < 0 && std::floor(b) != b) fail("a power that is a complex number");
  const double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) {
    fail("(34, 'Numerical result out of range')");
  }
  return Value::real(result);
}

bool plain_list(const Value& value) {
  return value.is_list() && value.list().kind == List::Kind::kList;
}

bool tuple(const Value& value) {
  return value.is_list() && value.list().is_tuple();
}

Value repeated(Runtime& runtime, const Value& value, std::int64_t times) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(times, 0));
  const std::size_t size =
      value.is_text() ? value.text().size() : value.list().items.size() * sizeof(Value);
  if (size != 0 && count > (std::size_t{1} << 40) / size) {
    throw Failure{"a repeated value is too large", "repeat it less often"};
  }
  const Charge whole(&runtime.heap(), size * count);  // fails before anything is allocated
  runtime.spend_bytes(size * count);
  if (value.is_text()) {
    std::string text;
    text.reserve(size * count);
    for (std::size_t i = 0; size != 0 && i < count; ++i)
      text += value.text();
    return runtime.text(std::move(text));
  }
  std::vector<Value> items;
  const auto& source = value.list().items;
  items.reserve(source.size() * count);
  for (std::size_t i = 0; size != 0 && i < count; ++i) {
    items.insert(items.end(), source.begin(), source.end());
  }
  return runtime.list(std::move(items), value.list().kind);
}

Value joined_lists(Runtime& runtime, const List& left, const List& right) {
  std::vector<Value> items;
  items.reserve(left.items.size() + right.items.size());
  items.insert(items.end(), left.items.begin(), left.items.end());
  items.insert(items.end(), right.items.begin(), right.items.end());
  return runtime.list(std::move(items), left.is_tuple() ? List::Kind::kTuple : left.kind);
}

[[noreturn]] void fail_operands(Operator op, const Value& left, const Value& right) {
  if (op == Operator::kAdd && left.is_text()) {
    fail(fmt::format("can only concatenate str (not \"{}\") to str", right.type_name()));
  }
  fail(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", sign_of(op),
                   left.type_name(), right.type_name()));
}

bool contains_text(Runtime& runtime, const Value& container, const Value& item) {
  if (item.is_undefined() || !item.is_text()) {
    if (item.is_undefined()) fail_undefined(item);
    fail(fmt::format("'in <string>' requires string as left operand, not {}", item.type_name()));
  }
  runtime.spend((container.text().size() + item.text().size()) / 16);
  return find_text(container.text(), item.text(), 0) != std::string::npos;
}

std::int64_t slice_part(const Value& part, std::int64_t otherwise) {
  if (part.is_none()) return otherwise;
  require_defined(part);
  if (!part.is_integral()) fail("slice indices must be integers or None");
  return part.as_int();
}

Value text_slice(Runtime& runtime, const std::string& text, std::int64_t length, const Span& span) {
  runtime.spend_bytes(text.size());
  if (span.step == 1 || span.count <= 1) {
    if (span.count <= 0) return runtime.text("");
    const std::size_t begin = byte_offset(text, span.start);
    const std::size_t end = static_cast<std::int64_t>(text.size()) == length
                                ? begin + static_cast<std::size_t>(span.count)
                                : byte_offset(text.substr(begin), span.count) + begin;
    return runtime.text(text.substr(begin, end - begin));
  }
  std::vector<std::size_t> offsets;  // of every code point, and the end
  const Charge memory(&runtime.heap(), (static_cast<std::size_t>(length) + 1) * sizeof(offsets[0]));
  runtime.spend(static_cast<std::size_t>(length) / 4);
  offsets.reserve(static_cast<std::size_t>(length) + 1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((text[i] & 0xC0) != 0x80) offsets.push_back(i);
  }
  offsets.push_back(text.size());
  std::string result;
  for (std::int64_t k = 0; k < span.count; ++k) {
    const auto i = static_cast<std::size_t>(span.start + k * span.step);
    result.append(text, offsets[i], offsets[i + 1] - offsets[i]);
  }
  return runtime.text(std::move(result));
}

// The element of a list, range or string, or null.
std::optional<Value> element(Runtime& runtime, const Value& value, std::int64_t index) {
  const std::int64_t size = length(runtime, value);
  if (index < 0) index += size;
  if (index < 0 || index >= size) return std::nullopt;
  if (value.is_list()) return value.list().items[static_cast<std::size_t>(index)];
  const std::string& text = value.text();
  std::size_t at = byte_offset(text, index);
  const std::size_t begin = at;
  next_code_point(text, at);
  return runtime.text(text.substr(begin, at - begin));
}

bool indexable(const Value& value) {
  if (value.is_text()) return true;
  return value.is_list() && (value.list().is_tuple() || value.list().kind == List::Kind::kList ||
                             value.list().kind == List::Kind::kRange);
}

}  // namespace

Value arithmetic(Runtime& runtime, Operator op, const Value& left, const Value& right) {
  if (op == Operator::kModulo && left.is_text()) {
    return runtime.text(percent_format(runtime, left.text(), right));
  }
  if (op == Operator::kAdd && left.is_text() && right.is_text()) {
    std::string text;
    text.reserve(left.text().size() + right.text().size());
    text += left.text();
    text += right.text();
    return runtime.text(std::move(text));
  }
  require_defined(left);
  require_defined(right);
  if (left.is_number() && right.is_number()) {
    if (left.is_integral() && right.is_integral()) {
      return integer_arithmetic(op, left.as_int(), right.as_int());
    }
    return float_arithmetic(op, left.as_double(), right.as_double());
  }
  if (op == Operator::kAdd &&
      ((plain_list(left) && plain_list(right)) || (tuple(left) && tuple(right)))) {
    return joined_lists(runtime, left.list(), right.list());
  }
  if (op == Operator::kMultiply) {
    const auto sequence = [](const Value& v) { return v.is_text() || plain_list(v) || tuple(v); };
    if (sequence(left) && right.is_integral()) return repeated(runtime, left, right.as_int());
    if (sequence(right) && left.is_integral()) return repeated(runtime, right, left.as_int());
  }
  fail_operands(op, left, right);
}

bool compare(Runtime& runtime, Operator op, const Value& left, const Value& right) {
  const auto unordered = [&] {
    return (left.is_float() && std::isnan(left.as_double())) ||
           (right.is_float() && std::isnan(right.as_double()));
  };
  switch (op) {
    case Operator::kEqual:
      return equal(runtime, left, right);
    case Operator::kNotEqual:
      return !equal(runtime, left, right);
    case Operator::kLess:
      return less(runtime, left, right);
    case Operator::kGreater:
      return less(runtime, right, left, ">");
    case Operator::kLessEqual:
      return !less(runtime, right, left, "<=") && !unordered();
    case Operator::kGreaterEqual:
      return !less(runtime, left, right, ">=") && !unordered();
    case Operator::kIn:
      return contains(runtime, right, left);
    default:
      return !contains(runtime, right, left);
  }
}

Value negative(const Value& value) {
  require_defined(value);
  if (value.is_float()) return Value::real(-value.as_double());
  if (value.is_integral()) return integer_arithmetic(Operator::kSubtract, 0, value.as_int());
  fail(fmt::format("bad operand type for unary -: '{}'", value.type_name()));
}

Value positive(const Value& value) {
  require_defined(value);
  if (value.is_float()) return value;
  if (value.is_integral()) return Value::integer(value.as_int());
  fail(fmt::format("bad operand type for unary +: '{}'", value.type_name()));
}

bool contains(Runtime& runtime, const Value& container, const Value& item) {
  if (container.is_text()) return contains_text(runtime, container, item);
  if (container.is_dict()) return container.dict().find(runtime, item) != nullptr;
  if (container.is_undefined()) return false;
  if (!container.is_list()) {
    fail(fmt::format("argument of type '{}' is not iterable", container.type_name()));
  }
  const List& list = container.list();
  const bool once = list.kind == List::Kind::kGenerator;
  for (std::size_t i = once ? list.read : 0; i < list.items.size(); ++i) {
    if (once) list.read = i + 1;
    if (identical(list.items[i], item) || equal(runtime, list.items[i], item)) return true;
  }
  return false;
}

Value get_attribute(Runtime& runtime, const Value& value, const std::string& name,
                    const Value& name_value) {
  if (value.is_dict()) {  // the common case: a message's field that is not a method
    if (!has_method(value, name)) {
      if (const Value* found = value.dict().find(runtime, name)) return *found;
      return runtime.undefined_attribute(value, name_value);
    }
    return method_of(runtime, value, name);
  }
  require_defined(value);
  if (value.is_object()) {
    Value result;
    if (value.object().attribute(runtime, name, result)) return result;
  } else if (has_method(value, name)) {
    return method_of(runtime, value, name);
  }
  return runtime.undefined_attribute(value, name_value);
}

Value get_item(Runtime& runtime, const Value& value, const Value& key) {
  require_defined(value);
  if (value.is_dict()) {
    const bool hashable = !key.is_dict() && !(key.is_list() && !key.list().is_tuple());
    if (hashable) {
      if (const Value* found = value.dict().find(runtime, key)) return *found;
    }
  } else if (indexable(value) && key.is_integral()) {
    if (const auto found = element(runtime, value, key.as_int())) return *found;
  }
  if (key.is_text() && (value.is_object() || has_method(value, key.text()))) {
    return get_attribute(runtime, value, key.text(), key);
  }
  return runtime.undefined_attribute(value, key);
}

std::size_t byte_offset(const std::string& text, std::int64_t index) {
  std::size_t at = 0;
  while (at < text.size() && index > 0) {
    ++at;
    while (at < text.size() && (text[at] & 0xC0) == 0x80)
      ++at;
    --index;
  }
  return at;
}

Span slice_span(std::int64_t length, const Value& start, const Value& stop, const Value& step) {
  const std::int64_t stride = slice_part(step, 1);
  if (stride == 0) fail("slice step cannot be zero");
  const bool forward = stride > 0;
  const std::int64_t lowest = forward ? 0 : -1;
  const std::int64_t highest = forward ? length : length - 1;
  const auto clamped = [&](const Value& part, std::int64_t otherwise) {
    std::int64_t index = slice_part(part, otherwise);
    if (part.is_none()) return index;
    if (index < 0) index += length;
    return std::clamp(index, lowest, highest);
  };
  const std::int64_t begin = clamped(start, forward ? 0 : length - 1);
  const std::int64_t end = clamped(stop, forward ? length : -1);
  const std::int64_t distance = forward ? end - begin : begin - end;
  if (distance <= 0) return {begin, stride, 0};
  const std::uint64_t width = forward ? static_cast<std::uint64_t>(stride)
                                      : std::uint64_t{0} - static_cast<std::uint64_t>(stride);
  return {begin, stride,
          static_cast<std::int64_t>((static_cast<std::uint64_t>(distance) - 1) / width + 1)};
}

Value get_slice(Runtime& runtime, const Value& value, const Value& start, const Value& stop,
                const Value& step) {
  require_defined(value);
  if (!indexable(value)) {
    return runtime.undefined_hint(fmt::format("'{} object' cannot be sliced", value.type_name()));
  }
  const std::int64_t size = length(runtime, value);
  const Span span = slice_span(size, start, stop, step);
  if (value.is_text()) return text_slice(runtime, value.text(), size, span);
  std::vector<Value> items;
  items.reserve(static_cast<std::size_t>(span.count));
  for (std::int64_t k = 0; k < span.count; ++k) {
    items.push_back(value.list().items[static_cast<std::size_t>(span.start + k * span.step)]);
  }
  return runtime.list(std::move(items), value.list().kind);
}

}  // namespace antisd::inline text::jinja
