#include "text/jinja/runtime.h"

#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "core/utf8.h"
#include "text/jinja/print.h"

namespace antisd::inline text::jinja {

void fail(std::string problem) {
  throw Failure{std::move(problem), "check that the messages have the fields the template reads"};
}

void fail_undefined(const Value& value) {
  throw Failure{value.undefined().why(),
                "pass it, or fix the template with `is defined` or the `default` filter"};
}

void Runtime::fail_steps() {
  throw Failure{"the template does not end within its limit of steps",
                "shorten the conversation, or fix the loop"};
}

Value Runtime::text(std::string bytes) {
  spend_bytes(bytes.size());
  return Value(std::make_shared<const Text>(std::move(bytes), heap_));
}

Value Runtime::list(std::vector<Value> items, List::Kind kind, std::string label) {
  spend(1 + items.size() / 4);
  return Value(std::shared_ptr<const List>(
      std::make_shared<List>(std::move(items), kind, std::move(label), heap_)));
}

Value Runtime::generator(std::vector<Value> items) {
  return list(std::move(items), List::Kind::kGenerator, "<generator object>");
}

std::shared_ptr<Dict> Runtime::new_dict() {
  return std::make_shared<Dict>(heap_);
}

Value Runtime::undefined_name(const std::string& name) {
  auto undefined = std::make_shared<Undefined>(heap_);
  undefined->name = name;
  return Value(std::shared_ptr<const Undefined>(std::move(undefined)));
}

Value Runtime::undefined_hint(const std::string& hint) {
  auto undefined = std::make_shared<Undefined>(heap_);
  undefined->hint = hint;
  return Value(std::shared_ptr<const Undefined>(std::move(undefined)));
}

Value Runtime::undefined_attribute(const Value& owner, const Value& name) {
  auto undefined = std::make_shared<Undefined>(heap_);
  undefined->owner = owner.type_name();
  undefined->element = !name.is_text();
  undefined->name = name.is_text() ? name.text().substr(0, 200) : repr(*this, name, 200);
  undefined->charge.grow(undefined->name.size());
  return Value(std::shared_ptr<const Undefined>(std::move(undefined)));
}

Value Runtime::unsafe_attribute(const Value& owner, const std::string& name) {
  auto undefined = std::make_shared<Undefined>(heap_);
  undefined->owner = owner.type_name();
  undefined->name = name;
  undefined->unsafe = true;
  return Value(std::shared_ptr<const Undefined>(std::move(undefined)));
}

bool truthy(const Value& value) {
  if (value.is_none() || value.is_undefined()) return false;
  if (value.is_float()) return value.as_double() != 0;
  if (value.is_number()) return value.as_int() != 0;
  if (value.is_text()) return !value.text().empty();
  if (value.is_list()) {
    return value.list().kind == List::Kind::kGenerator || !value.list().items.empty();
  }
  if (value.is_dict()) return !value.dict().entries.empty();
  return true;
}

bool identical(const Value& left, const Value& right) {
  if (left.is_none() || right.is_none()) return left.is_none() && right.is_none();
  if (left.is_bool() || right.is_bool()) {
    return left.is_bool() && right.is_bool() && left.as_bool() == right.as_bool();
  }
  if (left.is_int() && right.is_int()) return left.as_int() == right.as_int();
  // CPython shares equal short strings; a template cannot rely on more than that.
  if (left.is_text() && right.is_text()) return left.text() == right.text();
  return left.identity() != nullptr && left.identity() == right.identity();
}

namespace {

bool equal_lists(Runtime& runtime, const List& left, const List& right) {
  const bool same_kind = left.kind == right.kind || (left.is_tuple() && right.is_tuple());
  if (&left == &right) return true;
  if (!same_kind || left.kind == List::Kind::kGenerator) return false;
  if (left.items.size() != right.items.size()) return false;
  for (std::size_t i = 0; i < left.items.size(); ++i) {
    if (!equal(runtime, left.items[i], right.items[i])) return false;
  }
  return true;
}

bool equal_dicts(Runtime& runtime, const Dict& left, const Dict& right) {
  if (&left == &right) return true;
  if (left.entries.size() != right.entries.size()) return false;
  for (const auto& [key, value] : left.entries) {
    const Value* other = right.find(runtime, key);
    if (other == nullptr || !equal(runtime, value, *other)) return false;
  }
  return true;
}

// Compares an int with a float exactly: a 64-bit int has more digits than a double.
int compare_mixed(std::int64_t left, double right) {
  if (std::isnan(right)) return 2;
  if (right >= 9223372036854775808.0) return -1;
  if (right < -9223372036854775808.0) return 1;
  const double floor = std::floor(right);
  const auto whole = static_cast<std::int64_t>(floor);
  if (left != whole) return left < whole ? -1 : 1;
  return floor < right ? -1 : 0;
}

// -1, 0, 1, or 2 if a NaN has no order.
int compare_numbers(const Value& left, const Value& right) {
  if (left.is_integral() && right.is_integral()) {
    return left.as_int() < right.as_int() ? -1 : left.as_int() > right.as_int();
  }
  if (left.is_integral()) return compare_mixed(left.as_int(), right.as_double());
  if (right.is_integral()) {
    const int mirrored = compare_mixed(right.as_int(), left.as_double());
    return mirrored == 2 ? 2 : -mirrored;
  }
  const double a = left.as_double(), b = right.as_double();
  if (std::isnan(a) || std::isnan(b)) return 2;
  return a < b ? -1 : a > b;
}

}  // namespace

bool equal(Runtime& runtime, const Value& left, const Value& right) {
  runtime.spend();
  if (left.is_number() && right.is_number()) return compare_numbers(left, right) == 0;
  if (left.is_text() && right.is_text()) {
    runtime.spend_bytes(std::min(left.text().size(), right.text().size()));
    return left.text() == right.text();
  }
  if (left.is_none() || right.is_none()) return left.is_none() && right.is_none();
  if (left.is_list() && right.is_list()) return equal_lists(runtime, left.list(), right.list());
  if (left.is_dict() && right.is_dict()) return equal_dicts(runtime, left.dict(), right.dict());
  if (left.is_undefined() && right.is_undefined()) return true;
  return left.is_object() && right.is_object() && &left.object() == &right.object();
}

bool less(Runtime& runtime, const Value& left, const Value& right, const char* sign) {
  runtime.spend();
  require_defined(left);
  require_defined(right);
  if (left.is_number() && right.is_number()) return compare_numbers(left, right) == -1;
  if (left.is_text() && right.is_text()) {
    runtime.spend_bytes(std::min(left.text().size(), right.text().size()));
    return left.text() < right.text();
  }
  const bool sequences =
      left.is_list() && right.is_list() &&
      ((left.list().is_tuple() && right.list().is_tuple()) ||
       (left.list().kind == List::Kind::kList && right.list().kind == List::Kind::kList));
  if (!sequences) {
    fail(fmt::format("'{}' not supported between instances of '{}' and '{}'", sign,
                     left.type_name(), right.type_name()));
  }
  const auto& a = left.list().items;
  const auto& b = right.list().items;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!equal(runtime, a[i], b[i])) return less(runtime, a[i], b[i], sign);
  }
  return a.size() < b.size();
}

std::size_t hash(std::string_view text) {
  return std::hash<std::string_view>()(text);
}

std::size_t hash(Runtime& runtime, const Value& value) {
  runtime.spend();
  if (value.is_text()) {
    runtime.spend_bytes(value.text().size());
    return hash(value.text());
  }
  if (value.is_none()) return 1;
  if (value.is_undefined()) return 2;
  if (value.is_integral()) return std::hash<std::int64_t>()(value.as_int());
  if (value.is_float()) {
    const double number = value.as_double();
    const bool whole = std::floor(number) == number && std::abs(number) < 9e18;
    return whole ? std::hash<std::int64_t>()(static_cast<std::int64_t>(number))
                 : std::hash<double>()(number);
  }
  if (value.is_object()) return std::hash<const void*>()(value.identity());
  if (value.is_list() && value.list().is_tuple()) {
    std::size_t code = 3;
    for (const Value& item : value.list().items)
      code = code * 1'000'003 + hash(runtime, item);
    return code;
  }
  fail(fmt::format("unhashable type: '{}'", value.type_name()));
}

bool iterable(const Value& value) {
  return value.is_text() || value.is_list() || value.is_dict() || value.is_undefined();
}

std::shared_ptr<const List> elements(Runtime& runtime, const Value& value) {
  if (value.is_list()) {
    const List& list = value.list();
    if (list.kind != List::Kind::kGenerator) return value.list_pointer();
    const std::size_t read = std::exchange(list.read, list.items.size());
    if (read == 0) return value.list_pointer();
    return runtime.list({list.items.begin() + static_cast<std::ptrdiff_t>(read), list.items.end()})
        .list_pointer();
  }
  std::vector<Value> items;
  if (value.is_dict()) {
    items.reserve(value.dict().entries.size());
    for (const auto& entry : value.dict().entries)
      items.push_back(entry.first);
  } else if (value.is_text()) {
    const std::string& text = value.text();
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t begin = at;
      next_code_point(text, at);
      runtime.spend();
      items.push_back(runtime.text(text.substr(begin, at - begin)));
    }
  } else if (!value.is_undefined()) {
    fail(fmt::format("'{}' object is not iterable", value.type_name()));
  }
  return runtime.list(std::move(items)).list_pointer();
}

bool has_length(const Value& value) {
  return iterable(value) && !(value.is_list() && value.list().kind == List::Kind::kGenerator);
}

std::int64_t length(Runtime& runtime, const Value& value) {
  if (!has_length(value)) {
    fail(fmt::format("object of type '{}' has no len()", value.type_name()));
  }
  if (value.is_undefined()) return 0;
  if (value.is_dict()) return static_cast<std::int64_t>(value.dict().entries.size());
  if (value.is_list()) return static_cast<std::int64_t>(value.list().items.size());
  runtime.spend_bytes(value.text().size());
  std::int64_t count = 0;
  for (const char c : value.text())
    count += (c & 0xC0) != 0x80;
  return count;
}

Bound::Bound(const char* function, Arguments& arguments, std::vector<const char*> names,
             std::size_t required)
    : function_(function), names_(std::move(names)), given_(names_.size(), nullptr) {
  if (arguments.positional.size() > names_.size()) {
    fail(fmt::format("{}() takes at most {} arguments ({} given)", function, names_.size(),
                     arguments.positional.size()));
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    given_[i] = &arguments.positional[i];
  }
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::find(names_.begin(), names_.end(), std::string_view(name));
    const auto i = static_cast<std::size_t>(found - names_.begin());
    if (found == names_.end() || given_[i] != nullptr) {
      fail(fmt::format("{}() got an unexpected keyword argument '{}'", function, name));
    }
    given_[i] = &value;
  }
  for (std::size_t i = 0; i < required; ++i) {
    if (given_[i] == nullptr) {
      fail(fmt::format("{}() missing the argument '{}'", function, names_[i]));
    }
  }
}

const std::string& Bound::text(std::size_t i) const {
  require_defined(at(i));
  if (!at(i).is_text()) {
    fail(fmt::format("{}() argument '{}' must be str, not {}", function_, names_[i],
                     at(i).type_name()));
  }
  return at(i).text();
}

std::int64_t Bound::integer(std::size_t i, std::int64_t otherwise) const {
  if (!has(i)) return otherwise;
  require_defined(at(i));
  if (!at(i).is_integral()) {
    fail(fmt::format("{}() argument '{}' must be int, not {}", function_, names_[i],
                     at(i).type_name()));
  }
  return at(i).as_int();
}

}  // namespace antisd::inline text::jinja
