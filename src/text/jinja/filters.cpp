#include "text/jinja/filters.h"

#include <algorithm>

#include <fmt/format.h>

#include "text/jinja/operators.h"
#include "text/jinja/unicode.h"

namespace antisd::inline text::jinja {

Filter find_filter(const std::string& name) {
  for (const FilterTable* table : {&text_filters(), &sequence_filters(), &selection_filters()}) {
    if (const auto found = table->find(name); found != table->end()) return found->second;
  }
  return nullptr;
}

Value apply_filter(Runtime& runtime, const std::string& name, const Value& value,
                   Arguments& arguments) {
  const Filter filter = find_filter(name);
  if (filter == nullptr) {
    throw Failure{fmt::format("No filter named '{}'.", name), "use one of Jinja's own filters"};
  }
  runtime.spend();
  return filter(runtime, value, arguments);
}

AttributePath::AttributePath(Runtime& runtime, const Value& attribute) {
  if (attribute.is_none()) return;
  if (!attribute.is_text()) {
    parts_.push_back(attribute);
    return;
  }
  std::string_view rest = attribute.text();
  while (true) {
    const std::size_t end = std::min(rest.find('.'), rest.size());
    const std::string part(rest.substr(0, end));
    const bool digits =
        !part.empty() && part.size() < 10 &&
        std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    runtime.spend();
    parts_.push_back(digits ? Value::integer(std::stoll(part)) : runtime.text(part));
    if (end == rest.size()) return;
    rest.remove_prefix(end + 1);
  }
}

Value AttributePath::get(Runtime& runtime, const Value& item, const Value* otherwise) const {
  Value value = item;
  for (const Value& part : parts_) {
    runtime.spend();
    value = get_item(runtime, value, part);
    if (otherwise != nullptr && !otherwise->is_none() && value.is_undefined()) value = *otherwise;
  }
  return value;
}

Value without_case(Runtime& runtime, const Value& value) {
  return value.is_text() ? runtime.text(lower(value.text())) : value;
}

}  // namespace antisd::inline text::jinja
