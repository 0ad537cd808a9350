#include "text/jinja/value.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "core/utf8.h"
#include "text/jinja/print.h"
#include "text/jinja/runtime.h"

namespace antisd::inline text::jinja {
namespace {

constexpr std::size_t kIndexedFrom = 9;  // number of entries from which a dict has an index
constexpr std::size_t kNoEntry = std::numeric_limits<std::size_t>::max();

int checked_depth(int depth) {
  if (depth > kMaxValueDepth) {
    throw Failure{fmt::format("a value is nested deeper than {} levels", kMaxValueDepth),
                  "flatten the value"};
  }
  return depth;
}

}  // namespace

void Heap::take(std::size_t bytes) {
  if (bytes > limit_ - live_) {
    throw Failure{fmt::format("the template's values need more than {} MiB", limit_ >> 20),
                  "shorten the messages, or fix a loop that grows a value"};
  }
  live_ += bytes;
}

Value Value::constant(std::string text) {
  return Value(std::make_shared<const Text>(std::move(text)));
}

std::int64_t Value::as_int() const {
  return is_bool() ? std::int64_t{as_bool()} : std::get<std::int64_t>(data_);
}

double Value::as_double() const {
  return is_float() ? std::get<double>(data_) : static_cast<double>(as_int());
}

const std::string& Value::text() const {
  return std::get<std::shared_ptr<const Text>>(data_)->bytes;
}

int Value::depth() const {
  if (is_list()) return list().depth;
  if (is_dict()) return dict().depth;
  return 0;
}

const void* Value::identity() const {
  if (is_text()) return std::get<std::shared_ptr<const Text>>(data_).get();
  if (is_list()) return &list();
  if (is_dict()) return &dict();
  if (is_object()) return &object();
  return nullptr;
}

std::string Value::type_name() const {
  if (is_none()) return "NoneType";
  if (is_bool()) return "bool";
  if (is_int()) return "int";
  if (is_float()) return "float";
  if (is_text()) return "str";
  if (is_dict()) return "dict";
  if (is_undefined()) return "Undefined";
  if (is_object()) return object().type_name();
  switch (list().kind) {
    case List::Kind::kList:
      return "list";
    case List::Kind::kTuple:
    case List::Kind::kGroup:
      return "tuple";
    case List::Kind::kRange:
      return "range";
    case List::Kind::kGenerator:
      return "generator";
    case List::Kind::kKeys:
      return "dict_keys";
    case List::Kind::kValues:
      return "dict_values";
    case List::Kind::kItems:
      return "dict_items";
  }
  return "list";
}

List::List(std::vector<Value> values, Kind sort, std::string name, Heap& heap)
    : items(std::move(values)),
      kind(sort),
      label(std::move(name)),
      charge(&heap, sizeof(List) + label.size() + items.size() * sizeof(Value)) {
  for (const Value& item : items)
    depth = std::max(depth, item.depth() + 1);
  checked_depth(depth);
}

template <typename Equal>
std::size_t Dict::position(std::size_t hash, Equal&& equal) const {
  if (entries.size() < kIndexedFrom) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (equal(entries[i].first)) return i;
    }
    return kNoEntry;
  }
  const auto [begin, end] = index_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (equal(entries[it->second].first)) return it->second;
  }
  return kNoEntry;
}

const Value* Dict::find(Runtime& runtime, std::string_view key) const {
  runtime.spend_bytes(key.size());
  const std::size_t found = position(entries.size() < kIndexedFrom ? 0 : hash(key), [&](auto& k) {
    runtime.spend_bytes(32 + key.size());
    return k.is_text() && k.text() == key;
  });
  return found == kNoEntry ? nullptr : &entries[found].second;
}

const Value* Dict::find(Runtime& runtime, const Value& key) const {
  if (key.is_text()) return find(runtime, key.text());
  const std::size_t code = hash(runtime, key);
  const std::size_t found = position(code, [&](auto& k) { return equal(runtime, k, key); });
  return found == kNoEntry ? nullptr : &entries[found].second;
}

void Dict::set(Runtime& runtime, Value key, Value value) {
  runtime.spend(2);
  depth = checked_depth(std::max({depth, value.depth() + 1, key.depth() + 1}));
  const std::size_t code = hash(runtime, key);
  const std::size_t found = position(code, [&](auto& k) { return equal(runtime, k, key); });
  if (found != kNoEntry) {
    entries[found].second = std::move(value);
    return;
  }
  charge.grow(2 * sizeof(Entry));
  entries.emplace_back(std::move(key), std::move(value));
  if (entries.size() < kIndexedFrom) return;
  if (entries.size() == kIndexedFrom) {
    for (std::size_t i = 0; i + 1 < entries.size(); ++i) {
      index_.emplace(hash(runtime, entries[i].first), i);
    }
  }
  index_.emplace(code, entries.size() - 1);
}

std::string Undefined::why() const {
  if (!hint.empty()) return hint;
  if (owner.empty()) return fmt::format("'{}' is undefined", name);
  if (unsafe) {
    return fmt::format(
        "access to attribute '{}' of '{}' object is unsafe (a template cannot "
        "change its values)",
        name, owner);
  }
  const std::string shown = owner == "NoneType" ? "None" : owner + " object";
  if (element) return fmt::format("{} has no element {}", shown, name);
  return fmt::format("'{}' has no attribute {}", shown, python_quoted(name));
}

Value Object::call(Runtime&, Arguments&) {
  fail(fmt::format("'{}' object is not callable", type_name()));
}

bool Object::attribute(Runtime&, const std::string&, Value&) {
  return false;
}

Value from_json(Runtime& runtime, const Json& json, int depth) {
  checked_depth(depth + 1);
  runtime.spend();
  switch (json.type()) {
    case Json::value_t::boolean:
      return Value::boolean(json.get<bool>());
    case Json::value_t::number_integer:
      return Value::integer(json.get<std::int64_t>());
    case Json::value_t::number_unsigned:
      if (json.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
        throw Failure{fmt::format("the integer {} does not fit into 64 bits", json.dump()),
                      "pass it as a string"};
      }
      return Value::integer(json.get<std::int64_t>());
    case Json::value_t::number_float:
      return Value::real(json.get<double>());
    case Json::value_t::string: {
      const auto& text = json.get_ref<const std::string&>();
      runtime.spend_bytes(text.size());
      return runtime.text(find_invalid_utf8(text) ? replace_invalid_utf8(text) : text);
    }
    case Json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const Json& item : json)
        items.push_back(from_json(runtime, item, depth + 1));
      return runtime.list(std::move(items));
    }
    case Json::value_t::object: {
      const auto dict = runtime.new_dict();
      for (const auto& [key, item] : json.items()) {
        dict->set(runtime, runtime.text(find_invalid_utf8(key) ? replace_invalid_utf8(key) : key),
                  from_json(runtime, item, depth + 1));
      }
      return Value(std::shared_ptr<const Dict>(dict));
    }
    default:
      return Value();
  }
}

}  // namespace antisd::inline text::jinja
