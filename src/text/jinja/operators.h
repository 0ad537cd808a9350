// Python's operators on values, and access to their parts.
#pragma once

#include <string>

#include "text/jinja/ast.h"
#include "text/jinja/runtime.h"

namespace antisd::inline text::jinja {

Value arithmetic(Runtime& runtime, Operator op, const Value& left, const Value& right);
bool compare(Runtime& runtime, Operator op, const Value& left, const Value& right);
Value negative(const Value& value);
Value positive(const Value& value);
bool contains(Runtime& runtime, const Value& container, const Value& item);

// value.name: a method first, then an item; `name_value` is the same name as a value.
Value get_attribute(Runtime& runtime, const Value& value, const std::string& name,
                    const Value& name_value);
// value[key]: an item first, then a method.
Value get_item(Runtime& runtime, const Value& value, const Value& key);
// value[start:stop:step]; None for an omitted part.
Value get_slice(Runtime& runtime, const Value& value, const Value& start, const Value& stop,
                const Value& step);

// The byte offset of code point `index` (0 to the length).
std::size_t byte_offset(const std::string& text, std::int64_t index);

// The elements start, start + step, ... that a Python slice of `length` elements selects.
struct Span {
  std::int64_t start;
  std::int64_t step;
  std::int64_t count;
};
Span slice_span(std::int64_t length, const Value& start, const Value& stop, const Value& step);

}  // namespace antisd::inline text::jinja
