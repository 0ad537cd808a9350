#include <algorithm>

#include <fmt/format.h>

#include "text/jinja/filters.h"
#include "text/jinja/methods.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"

namespace antisd::inline text::jinja {
namespace {

Value count(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("length", arguments, {});
  return Value::integer(length(runtime, value));
}

Value join(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("join", arguments, {"d", "attribute"});
  const std::string separator = bound.has(0) ? str(runtime, bound.at(0)) : "";
  const AttributePath path(runtime, bound.has(1) ? bound.at(1) : Value());
  std::string text;
  Charge memory(&runtime.heap(), 0);
  bool first = true;
  const auto items = elements(runtime, value);
  for (const Value& item : items->items) {
    runtime.spend();
    runtime.spend_bytes(separator.size());
    if (!first) text += separator;
    first = false;
    const std::string part = str(runtime, path.get(runtime, item));
    memory.grow(separator.size() + part.size());
    text += part;
  }
  return runtime.text(std::move(text));
}

Value first(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("first", arguments, {});
  if (value.is_list() && value.list().kind == List::Kind::kGenerator) {
    const List& list = value.list();
    if (list.read < list.items.size()) return list.items[list.read++];
    return runtime.undefined_hint("No first item, sequence was empty.");
  }
  if (value.is_text() && !value.text().empty()) {
    return get_item(runtime, value, Value::integer(0));
  }
  const auto items = elements(runtime, value);
  if (items->items.empty()) return runtime.undefined_hint("No first item, sequence was empty.");
  return items->items.front();
}

Value last(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("last", arguments, {});
  if (!has_length(value)) {
    fail(fmt::format("'{}' object is not reversible", value.type_name()));
  }
  if (value.is_text() && !value.text().empty()) {
    return get_item(runtime, value, Value::integer(-1));
  }
  const auto items = elements(runtime, value);
  if (items->items.empty()) return runtime.undefined_hint("No last item, sequence was empty.");
  return items->items.back();
}

Value list(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("list", arguments, {});
  const auto items = elements(runtime, value);
  if (items->kind == List::Kind::kList) return Value(items);
  return runtime.list(items->items);
}

Value items(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("items", arguments, {});
  if (value.is_undefined()) return runtime.generator({});
  if (!value.is_dict()) fail("Can only get item pairs from a mapping.");
  return runtime.generator(call_method(runtime, value, "items", arguments).list().items);
}

Value reverse(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("reverse", arguments, {});
  if (value.is_text()) {
    return get_slice(runtime, value, Value(), Value(), Value::integer(-1));
  }
  if (!iterable(value)) fail("argument must be iterable");
  std::vector<Value> result = elements(runtime, value)->items;
  std::reverse(result.begin(), result.end());
  return runtime.generator(std::move(result));
}

// Items with their sort keys.
using Keyed = std::vector<std::pair<Value, Value>>;

void sort_keyed(Runtime& runtime, Keyed& keyed, bool descending) {
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return descending ? less(runtime, b.first, a.first) : less(runtime, a.first, b.first);
  });
}

Value values_of(Runtime& runtime, Keyed keyed) {
  std::vector<Value> result;
  result.reserve(keyed.size());
  for (auto& entry : keyed)
    result.push_back(std::move(entry.second));
  return runtime.list(std::move(result));
}

Value sort(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  std::vector<AttributePath> paths;
  if (bound.has_value(2) && bound.at(2).is_text()) {
    Arguments comma{{runtime.text(",")}, {}};
    const Value parts = call_method(runtime, bound.at(2), "split", comma);
    for (const Value& part : parts.list().items) {
      paths.emplace_back(runtime, part);
    }
  } else {
    paths.emplace_back(runtime, bound.has(2) ? bound.at(2) : Value());
  }
  const bool exact = bound.flag(1, false);
  Keyed keyed;
  const auto items = elements(runtime, value);
  for (const Value& item : items->items) {
    std::vector<Value> key;
    for (const AttributePath& path : paths) {
      const Value part = path.get(runtime, item);
      key.push_back(exact ? part : without_case(runtime, part));
    }
    keyed.emplace_back(key.size() == 1 ? key.front() : runtime.list(std::move(key)), item);
  }
  sort_keyed(runtime, keyed, bound.flag(0, false));
  return values_of(runtime, std::move(keyed));
}

Value dictsort(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  require_defined(value);
  if (!value.is_dict()) fail(fmt::format("dictsort needs a mapping, not {}", value.type_name()));
  const std::string by = bound.has(1) ? bound.text(1) : "key";
  if (by != "key" && by != "value") fail("You can only sort by either \"key\" or \"value\"");
  Keyed keyed;
  for (const auto& [key, item] : value.dict().entries) {
    const Value& order = by == "key" ? key : item;
    keyed.emplace_back(bound.flag(0, false) ? order : without_case(runtime, order),
                       runtime.tuple({key, item}));
  }
  sort_keyed(runtime, keyed, bound.flag(2, false));
  return values_of(runtime, std::move(keyed));
}

Value unique(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("unique", arguments, {"case_sensitive", "attribute"});
  const AttributePath path(runtime, bound.has(1) ? bound.at(1) : Value());
  const auto seen = runtime.new_dict();
  std::vector<Value> result;
  const auto items = elements(runtime, value);
  for (const Value& item : items->items) {
    Value key = path.get(runtime, item);
    if (!bound.flag(0, false)) key = without_case(runtime, key);
    if (seen->find(runtime, key) != nullptr) continue;
    seen->set(runtime, key, Value());
    result.push_back(item);
  }
  return runtime.generator(std::move(result));
}

template <bool kLargest>
Value extreme(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound(kLargest ? "max" : "min", arguments, {"case_sensitive", "attribute"});
  const AttributePath path(runtime, bound.has(1) ? bound.at(1) : Value());
  const auto items = elements(runtime, value);
  if (items->items.empty()) {
    return runtime.undefined_hint("No aggregated item, sequence was empty.");
  }
  const auto key_of = [&](const Value& item) {
    const Value key = path.get(runtime, item);
    return bound.flag(0, false) ? key : without_case(runtime, key);
  };
  const Value* best = &items->items.front();
  Value best_key = key_of(*best);
  for (std::size_t i = 1; i < items->items.size(); ++i) {
    Value key = key_of(items->items[i]);
    if (!(kLargest ? less(runtime, best_key, key, ">") : less(runtime, key, best_key))) continue;
    best = &items->items[i];
    best_key = std::move(key);
  }
  return *best;
}

Value sum(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("sum", arguments, {"attribute", "start"});
  const AttributePath path(runtime, bound.has(0) ? bound.at(0) : Value());
  Value total = bound.has(1) ? bound.at(1) : Value::integer(0);
  if (total.is_text()) fail("sum() can't sum strings [use ''.join(seq) instead]");
  const auto items = elements(runtime, value);
  for (const Value& item : items->items) {
    runtime.spend();
    total = arithmetic(runtime, Operator::kAdd, total, path.get(runtime, item));
  }
  return total;
}

Value batch(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("batch", arguments, {"linecount", "fill_with"}, 1);
  const std::int64_t size = bound.integer(0, 1);
  std::vector<Value> result;
  std::vector<Value> row;
  const auto source = elements(runtime, value);
  for (const Value& item : source->items) {
    if (static_cast<std::int64_t>(row.size()) == size) {
      result.push_back(runtime.list(std::exchange(row, {})));
    }
    row.push_back(item);
  }
  if (!row.empty()) {
    while (bound.has_value(1) && static_cast<std::int64_t>(row.size()) < size) {
      runtime.spend();
      row.push_back(bound.at(1));
    }
    result.push_back(runtime.list(std::move(row)));
  }
  return runtime.generator(std::move(result));
}

Value slice(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("slice", arguments, {"slices", "fill_with"}, 1);
  const auto source = elements(runtime, value);
  const auto size = static_cast<std::int64_t>(source->items.size());
  const std::int64_t slices = bound.integer(0, 1);
  if (slices == 0) fail("integer division or modulo by zero");
  std::vector<Value> result;
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < slices; ++i) {
    runtime.spend();
    const std::int64_t end = begin + size / slices + (i < size % slices);
    std::vector<Value> row(source->items.begin() + begin, source->items.begin() + end);
    if (bound.has_value(1) && i >= size % slices) row.push_back(bound.at(1));
    result.push_back(runtime.list(std::move(row)));
    begin = end;
  }
  return runtime.generator(std::move(result));
}

Value groupby(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Bound bound("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  const AttributePath path(runtime, bound.at(0));
  const Value* otherwise = bound.has(1) ? &bound.at(1) : nullptr;
  const bool exact = bound.flag(2, false);
  Keyed keyed;
  const auto items = elements(runtime, value);
  for (const Value& item : items->items) {
    const Value key = path.get(runtime, item, otherwise);
    keyed.emplace_back(exact ? key : without_case(runtime, key), item);
  }
  sort_keyed(runtime, keyed, false);
  std::vector<Value> groups;
  for (std::size_t begin = 0; begin < keyed.size();) {
    std::size_t end = begin;
    std::vector<Value> members;
    while (end < keyed.size() && equal(runtime, keyed[end].first, keyed[begin].first)) {
      members.push_back(keyed[end++].second);
    }
    if (end == begin) members.push_back(keyed[end++].second);  // NaN equals nothing
    const Value key = path.get(runtime, members.front(), otherwise);
    groups.push_back(runtime.list({key, runtime.list(std::move(members))}, List::Kind::kGroup));
    begin = end;
  }
  return runtime.list(std::move(groups));
}

}  // namespace

const FilterTable& sequence_filters() {
  static const FilterTable kFilters = {
      {"length", count},      {"count", count},       {"join", join},     {"first", first},
      {"last", last},         {"list", list},         {"items", items},   {"reverse", reverse},
      {"sort", sort},         {"dictsort", dictsort}, {"unique", unique}, {"min", extreme<false>},
      {"max", extreme<true>}, {"sum", sum},           {"batch", batch},   {"slice", slice},
      {"groupby", groupby},
  };
  return kFilters;
}

}  // namespace antisd::inline text::jinja
