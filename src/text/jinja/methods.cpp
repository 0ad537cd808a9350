#include "text/jinja/methods.h"

#include <unordered_map>

#include <fmt/format.h>

#include "text/jinja/print.h"
#include "text/jinja/string_methods.h"

namespace antisd::inline text::jinja {
namespace {

Value items(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Bound bound("items", arguments, {});
  std::vector<Value> pairs;
  pairs.reserve(self.dict().entries.size());
  for (const auto& [key, value] : self.dict().entries) {
    runtime.spend();
    pairs.push_back(runtime.tuple({key, value}));
  }
  return runtime.list(std::move(pairs), List::Kind::kItems);
}

Value keys(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Bound bound("keys", arguments, {});
  std::vector<Value> result;
  for (const auto& entry : self.dict().entries)
    result.push_back(entry.first);
  return runtime.list(std::move(result), List::Kind::kKeys);
}

Value values(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Bound bound("values", arguments, {});
  std::vector<Value> result;
  for (const auto& entry : self.dict().entries)
    result.push_back(entry.second);
  return runtime.list(std::move(result), List::Kind::kValues);
}

Value get(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Bound bound("get", arguments, {"key", "default"}, 1);
  if (const Value* found = self.dict().find(runtime, bound.at(0))) return *found;
  return bound.has(1) ? bound.at(1) : Value();
}

Value copy(Runtime&, const Value& self, Arguments& arguments) {
  const Bound bound("copy", arguments, {});
  return self;  // values are immutable
}

Value count(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Bound bound("count", arguments, {"value"}, 1);
  std::int64_t found = 0;
  for (const Value& item : self.list().items)
    found += equal(runtime, item, bound.at(0));
  return Value::integer(found);
}

Value index(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Bound bound("index", arguments, {"value", "start", "stop"}, 1);
  const auto& list = self.list().items;
  const auto size = static_cast<std::int64_t>(list.size());
  const auto place = [&](std::size_t i, std::int64_t otherwise) {
    const std::int64_t given = bound.integer(i, otherwise);
    return std::clamp<std::int64_t>(given < 0 ? given + size : given, 0, size);
  };
  const std::int64_t stop = place(2, size);
  for (std::int64_t i = place(1, 0); i < stop; ++i) {
    if (equal(runtime, list[static_cast<std::size_t>(i)], bound.at(0))) return Value::integer(i);
  }
  fail(fmt::format("{} is not in list", repr(runtime, bound.at(0), 100)));
}

const std::unordered_map<std::string, Method> kDictMethods = {
    {"items", items}, {"keys", keys}, {"values", values}, {"get", get}, {"copy", copy},
};
const std::unordered_map<std::string, Method> kListMethods = {
    {"count", count},
    {"index", index},
    {"copy", copy},
};
const std::unordered_map<std::string, Method> kTupleMethods = {
    {"count", count},
    {"index", index},
};

// Forbidden in the sandbox: they would change the value.
const std::unordered_map<std::string, Method> kForbiddenDictMethods = {
    {"clear", nullptr},      {"pop", nullptr},    {"popitem", nullptr},
    {"setdefault", nullptr}, {"update", nullptr}, {"fromkeys", nullptr},
};
const std::unordered_map<std::string, Method> kForbiddenListMethods = {
    {"append", nullptr}, {"clear", nullptr}, {"pop", nullptr},    {"reverse", nullptr},
    {"insert", nullptr}, {"sort", nullptr},  {"extend", nullptr}, {"remove", nullptr},
};

bool is_list_proper(const Value& value) {
  return value.is_list() && value.list().kind == List::Kind::kList;
}

Method find_method(const Value& value, const std::string& name) {
  const std::unordered_map<std::string, Method>* methods = nullptr;
  if (value.is_text()) {
    methods = &string_methods();
  } else if (value.is_dict()) {
    methods = &kDictMethods;
  } else if (is_list_proper(value)) {
    methods = &kListMethods;
  } else if (value.is_list() &&
             (value.list().is_tuple() || value.list().kind == List::Kind::kRange)) {
    methods = &kTupleMethods;
  }
  if (methods == nullptr) return nullptr;
  const auto found = methods->find(name);
  return found == methods->end() ? nullptr : found->second;
}

bool is_forbidden(const Value& value, const std::string& name) {
  return (value.is_dict() && kForbiddenDictMethods.contains(name)) ||
         (is_list_proper(value) && kForbiddenListMethods.contains(name));
}

bool is_group_field(const Value& value, const std::string& name) {
  return value.is_list() && value.list().kind == List::Kind::kGroup &&
         (name == "grouper" || name == "list");
}

class BoundMethod : public Object {
 public:
  BoundMethod(Runtime& runtime, Value self, std::string name)
      : self_(std::move(self)), name_(std::move(name)), charge_(&runtime.heap(), sizeof(*this)) {}
  std::string type_name() const override { return "builtin_function_or_method"; }
  Value call(Runtime& runtime, Arguments& arguments) override {
    const Value self = self_;
    return call_method(runtime, self, name_, arguments);
  }
  void release() override { self_ = Value(); }

 private:
  Value self_;
  std::string name_;
  Charge charge_;
};

}  // namespace

bool has_method(const Value& value, const std::string& name) {
  return find_method(value, name) != nullptr || is_forbidden(value, name) ||
         is_group_field(value, name);
}

bool has_allowed_method(const Value& value, const std::string& name) {
  return find_method(value, name) != nullptr;
}

Value method_of(Runtime& runtime, const Value& value, const std::string& name) {
  if (is_forbidden(value, name)) return runtime.unsafe_attribute(value, name);
  if (is_group_field(value, name)) return value.list().items[name == "grouper" ? 0 : 1];
  auto method = runtime.object<BoundMethod>(runtime, value, name);
  runtime.adopt(method);
  return Value(std::shared_ptr<Object>(std::move(method)));
}

Value call_method(Runtime& runtime, const Value& value, const std::string& name,
                  Arguments& arguments) {
  const Method method = find_method(value, name);
  if (method == nullptr) fail(fmt::format("'{}' has no method '{}'", value.type_name(), name));
  return method(runtime, value, arguments);
}

}  // namespace antisd::inline text::jinja
