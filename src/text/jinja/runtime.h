// What operators, methods, filters and tests need of the render in progress: a step budget, a heap
// for new values, and a way to call back.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"

namespace antisd::inline text::jinja {

struct Limits {
  std::size_t steps;  // one per evaluated node, and one per few dozen bytes or few items
  std::size_t output_bytes;
  std::size_t memory_bytes;  // of live values
};

class Runtime {
 public:
  explicit Runtime(const Limits& limits) : heap_(limits.memory_bytes), steps_(limits.steps) {}
  virtual ~Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  void spend(std::size_t steps = 1) {
    if (steps > steps_) fail_steps();
    steps_ -= steps;
  }
  // Counts work that reads or copies this many bytes.
  void spend_bytes(std::size_t bytes) { spend(bytes / 32); }

  Value text(std::string bytes);
  Value list(std::vector<Value> items, List::Kind kind = List::Kind::kList, std::string label = "");
  Value tuple(std::vector<Value> items) { return list(std::move(items), List::Kind::kTuple); }
  Value generator(std::vector<Value> items);
  std::shared_ptr<Dict> new_dict();
  template <typename Type, typename... Parameters>
  std::shared_ptr<Type> object(Parameters&&... parameters) {
    spend(4);
    return std::make_shared<Type>(std::forward<Parameters>(parameters)...);
  }

  Value undefined_name(const std::string& name);
  Value undefined_hint(const std::string& hint);
  Value undefined_attribute(const Value& owner, const Value& name);
  Value unsafe_attribute(const Value& owner, const std::string& name);

  Heap& heap() { return heap_; }

  // Calls any value; the depth is limited.
  virtual Value call(const Value& callee, Arguments& arguments) = 0;
  // Namespaces may form cycles; the render breaks them at its end.
  virtual void adopt(std::shared_ptr<Object> object) = 0;

 private:
  [[noreturn]] static void fail_steps();
  Heap heap_;
  std::size_t steps_;
};

// ---- Python's built-ins ----

bool truthy(const Value& value);
bool equal(Runtime& runtime, const Value& left, const Value& right);
bool identical(const Value& left, const Value& right);
// left < right; fails for types without an order.
bool less(Runtime& runtime, const Value& left, const Value& right, const char* sign = "<");
std::size_t hash(Runtime& runtime, const Value& value);
std::size_t hash(std::string_view text);
// The elements that a loop over the value would visit. Reads a generator to its end.
std::shared_ptr<const List> elements(Runtime& runtime, const Value& value);
bool iterable(const Value& value);
// len(); fails like Python's.
std::int64_t length(Runtime& runtime, const Value& value);
bool has_length(const Value& value);

[[noreturn]] void fail(std::string problem);  // a value of the wrong kind
[[noreturn]] void fail_undefined(const Value& value);
inline void require_defined(const Value& value) {
  if (value.is_undefined()) fail_undefined(value);
}

// ---- arguments ----

// Arguments in the order of `names`; omitted ones are null.
class Bound {
 public:
  Bound(const char* function, Arguments& arguments, std::vector<const char*> names,
        std::size_t required = 0);

  bool has(std::size_t i) const { return given_[i] != nullptr; }
  const Value& at(std::size_t i) const { return *given_[i]; }
  bool has_value(std::size_t i) const { return has(i) && !at(i).is_none(); }
  const std::string& text(std::size_t i) const;
  std::int64_t integer(std::size_t i, std::int64_t otherwise) const;
  bool flag(std::size_t i, bool otherwise) const { return has(i) ? truthy(at(i)) : otherwise; }

 private:
  const char* function_;
  std::vector<const char*> names_;
  std::vector<const Value*> given_;
};

}  // namespace antisd::inline text::jinja
