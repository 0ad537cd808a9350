// The functions that every template can call: range, dict, namespace, cycler, joiner,
// raise_exception, strftime_now.
#pragma once

#include <optional>
#include <string>

#include "text/jinja/runtime.h"

namespace antisd::inline text::jinja {

// A template's mutable variables.
class Namespace : public Object {
 public:
  explicit Namespace(Runtime& runtime) : charge_(&runtime.heap(), sizeof(*this)) {}
  std::string type_name() const override { return "Namespace"; }
  bool callable() const override { return false; }
  bool attribute(Runtime& runtime, const std::string& name, Value& value) override;
  void release() override { values_.clear(); }
  void set(Runtime& runtime, const std::string& name, Value value);

 private:
  std::vector<std::pair<std::string, Value>> values_;
  Charge charge_;
};

std::optional<Value> global(Runtime& runtime, const std::string& name);

}  // namespace antisd::inline text::jinja
