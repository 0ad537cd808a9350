// Jinja's filters, by name.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "text/jinja/ast.h"
#include "text/jinja/runtime.h"

namespace antisd::inline text::jinja {

using FilterTable = std::unordered_map<std::string, Filter>;

Filter find_filter(const std::string& name);  // null if there is none
Value apply_filter(Runtime& runtime, const std::string& name, const Value& value,
                   Arguments& arguments);

const FilterTable& text_filters();
const FilterTable& sequence_filters();
const FilterTable& selection_filters();

// Resolves `attribute` arguments: "a.0.b" looks up one part after the other.
class AttributePath {
 public:
  AttributePath(Runtime& runtime, const Value& attribute);
  Value get(Runtime& runtime, const Value& item, const Value* otherwise = nullptr) const;

 private:
  std::vector<Value> parts_;
};

// A sort key: strings are lower-cased unless told otherwise.
Value without_case(Runtime& runtime, const Value& value);

}  // namespace antisd::inline text::jinja
