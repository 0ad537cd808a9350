#include <fmt/format.h>

#include "text/jinja/filters.h"
#include "text/jinja/operators.h"
#include "text/jinja/predicates.h"

namespace antisd::inline text::jinja {
namespace {

Value attribute(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("attr", arguments, {"name"}, 1);
  if (value.is_dict()) return runtime.undefined_attribute(value, bound.at(0));
  return get_attribute(runtime, value, bound.text(0), bound.at(0));
}

// Removes the name before the arguments and returns it.
std::string take_name(Arguments& arguments, const char* problem) {
  if (arguments.positional.empty()) fail(problem);
  const Value name = arguments.positional.front();
  arguments.positional.erase(arguments.positional.begin());
  if (!name.is_text()) fail("the name of a filter or test must be a string");
  return name.text();
}

Value map_attribute(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("map", arguments, {"attribute", "default"}, 1);
  const AttributePath path(runtime, bound.at(0));
  std::vector<Value> result;
  const auto items = elements(runtime, value);
  for (const Value& item : items->items) {
    result.push_back(path.get(runtime, item, bound.has(1) ? &bound.at(1) : nullptr));
  }
  return runtime.generator(std::move(result));
}

Value map(Runtime& runtime, const Value& value, Arguments& arguments) {
  if (!truthy(value)) return runtime.generator({});
  const bool by_attribute =
      arguments.positional.empty() &&
      std::any_of(arguments.named.begin(), arguments.named.end(),
                  [](const auto& named) { return named.first == "attribute"; });
  if (by_attribute) return map_attribute(runtime, value, arguments);
  const std::string name = take_name(arguments, "map requires a filter argument");
  std::vector<Value> result;
  const auto items = elements(runtime, value);
  for (const Value& item : items->items) {
    Arguments copy = arguments;
    result.push_back(apply_filter(runtime, name, item, copy));
  }
  return runtime.generator(std::move(result));
}

// select, reject and their attribute forms: keeps the items for which the test returns kWanted.
template <bool kWanted, bool kByAttribute>
Value select(Runtime& runtime, const Value& value, Arguments& arguments) {
  if (!truthy(value)) return runtime.generator({});
  Value attribute;
  if (kByAttribute) {
    if (arguments.positional.empty()) fail("Missing parameter for attribute name");
    attribute = arguments.positional.front();
    arguments.positional.erase(arguments.positional.begin());
  }
  const AttributePath path(runtime, attribute);
  const bool tests = !arguments.positional.empty();
  const std::string name = tests ? take_name(arguments, "") : "";
  std::vector<Value> result;
  const auto items = elements(runtime, value);
  for (const Value& item : items->items) {
    runtime.spend();
    const Value tested = path.get(runtime, item);
    Arguments copy = arguments;
    const bool holds = tests ? apply_test(runtime, name, tested, copy) : truthy(tested);
    if (holds == kWanted) result.push_back(item);
  }
  return runtime.generator(std::move(result));
}

}  // namespace

const FilterTable& selection_filters() {
  static const FilterTable kFilters = {
      {"attr", attribute},
      {"map", map},
      {"select", select<true, false>},
      {"reject", select<false, false>},
      {"selectattr", select<true, true>},
      {"rejectattr", select<false, true>},
  };
  return kFilters;
}

}  // namespace antisd::inline text::jinja
