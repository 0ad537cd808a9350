#include "text/jinja/globals.h"

#include <ctime>

#include <fmt/format.h>

#include "text/jinja/print.h"

namespace antisd::inline text::jinja {
namespace {

constexpr std::int64_t kMaxRange = 100'000;  // the sandbox's own limit

using Native = Value (*)(Runtime& runtime, Arguments& arguments);

class Function : public Object {
 public:
  explicit Function(Native body) : body_(body) {}
  std::string type_name() const override { return "function"; }
  Value call(Runtime& runtime, Arguments& arguments) override { return body_(runtime, arguments); }

 private:
  Native body_;
};

Value range(Runtime& runtime, Arguments& arguments) {
  const Bound bound("range", arguments, {"start", "stop", "step"}, 1);
  const bool one = !bound.has(1);
  const std::int64_t start = one ? 0 : bound.integer(0, 0);
  const std::int64_t stop = bound.integer(one ? 0 : 1, 0);
  const std::int64_t step = bound.integer(2, 1);
  if (step == 0) fail("range() arg 3 must not be zero");
  const auto distance =
      step > 0 ? static_cast<__int128>(stop) - start : static_cast<__int128>(start) - stop;
  const auto width = step > 0 ? static_cast<__int128>(step) : -static_cast<__int128>(step);
  const __int128 count = distance <= 0 ? 0 : (distance - 1) / width + 1;
  if (count > kMaxRange) {
    throw Failure{
        fmt::format("Range too big. The sandbox blocks ranges larger than {}.", kMaxRange),
        "count less far"};
  }
  std::vector<Value> items;
  items.reserve(static_cast<std::size_t>(count));
  for (__int128 i = 0; i < count; ++i) {
    items.push_back(Value::integer(static_cast<std::int64_t>(start + i * step)));
  }
  std::string label = step == 1 ? fmt::format("range({}, {})", start, stop)
                                : fmt::format("range({}, {}, {})", start, stop, step);
  return runtime.list(std::move(items), List::Kind::kRange, std::move(label));
}

// dict(mapping or pairs, name=value ...)
std::shared_ptr<Dict> make_dict(Runtime& runtime, Arguments& arguments) {
  const auto result = runtime.new_dict();
  if (arguments.positional.size() > 1) fail("dict expected at most 1 argument");
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional.front();
    if (source.is_dict()) {
      for (const auto& [key, value] : source.dict().entries)
        result->set(runtime, key, value);
    } else {
      const auto pairs = elements(runtime, source);
      for (const Value& pair : pairs->items) {
        const auto parts = elements(runtime, pair);
        if (parts->items.size() != 2) fail("dictionary update sequence element needs two items");
        result->set(runtime, parts->items[0], parts->items[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.named) {
    result->set(runtime, runtime.text(name), value);
  }
  return result;
}

Value dict(Runtime& runtime, Arguments& arguments) {
  return Value(std::shared_ptr<const Dict>(make_dict(runtime, arguments)));
}

Value make_namespace(Runtime& runtime, Arguments& arguments) {
  const auto values = make_dict(runtime, arguments);
  const auto result = runtime.object<Namespace>(runtime);
  runtime.adopt(result);
  for (const auto& [name, value] : values->entries) {
    if (!name.is_text()) fail("the names of a namespace must be strings");
    result->set(runtime, name.text(), value);
  }
  return Value(std::shared_ptr<Object>(result));
}

class Cycler : public Object {
 public:
  explicit Cycler(std::vector<Value> items) : items_(std::move(items)) {}
  std::string type_name() const override { return "Cycler"; }
  bool callable() const override { return false; }
  bool attribute(Runtime& runtime, const std::string& name, Value& value) override;
  void release() override { items_.clear(); }
  Value next() {
    if (items_.empty()) return Value();
    const Value item = items_[at_];
    at_ = (at_ + 1) % items_.size();
    return item;
  }
  void reset() { at_ = 0; }

 private:
  std::vector<Value> items_;
  std::size_t at_ = 0;
};

// cycler.next and cycler.reset
class CyclerMethod : public Object {
 public:
  CyclerMethod(Cycler& cycler, bool resets) : cycler_(cycler), resets_(resets) {}
  std::string type_name() const override { return "method"; }
  Value call(Runtime&, Arguments& arguments) override {
    const Bound bound("next", arguments, {});
    if (!resets_) return cycler_.next();
    cycler_.reset();
    return Value();
  }

 private:
  Cycler& cycler_;  // kept alive by the render
  bool resets_;
};

bool Cycler::attribute(Runtime& runtime, const std::string& name, Value& value) {
  if (name == "current" && !items_.empty()) {
    value = items_[at_];
    return true;
  }
  if (name != "next" && name != "reset") return false;
  value = Value(std::shared_ptr<Object>(runtime.object<CyclerMethod>(*this, name == "reset")));
  return true;
}

Value cycler(Runtime& runtime, Arguments& arguments) {
  if (arguments.positional.empty()) fail("at least one item has to be provided");
  const auto result = runtime.object<Cycler>(arguments.positional);
  runtime.adopt(result);
  return Value(std::shared_ptr<Object>(result));
}

class Joiner : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  std::string type_name() const override { return "Joiner"; }
  Value call(Runtime& runtime, Arguments& arguments) override {
    const Bound bound("joiner", arguments, {});
    return std::exchange(used_, true) ? separator_ : runtime.text("");
  }
  void release() override { separator_ = Value(); }

 private:
  Value separator_;
  bool used_ = false;
};

Value joiner(Runtime& runtime, Arguments& arguments) {
  const Bound bound("joiner", arguments, {"sep"});
  const auto result = runtime.object<Joiner>(bound.has(0) ? bound.at(0) : runtime.text(", "));
  runtime.adopt(result);
  return Value(std::shared_ptr<Object>(result));
}

Value raise_exception(Runtime& runtime, Arguments& arguments) {
  const Bound bound("raise_exception", arguments, {"message"}, 1);
  throw Failure{str(runtime, bound.at(0)), "change the messages as the template asks"};
}

Value strftime_now(Runtime& runtime, Arguments& arguments) {
  const Bound bound("strftime_now", arguments, {"format"}, 1);
  const std::string& format = bound.text(0);
  if (format.size() > 1000) fail("strftime_now() format is too long");
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char buffer[8192];
  return runtime.text(
      std::string(buffer, std::strftime(buffer, sizeof(buffer), format.c_str(), &parts)));
}

}  // namespace

bool Namespace::attribute(Runtime& runtime, const std::string& name, Value& value) {
  for (const auto& [key, item] : values_) {
    runtime.spend();
    if (key != name) continue;
    value = item;
    return true;
  }
  return false;
}

void Namespace::set(Runtime& runtime, const std::string& name, Value value) {
  if (name.starts_with('_')) {
    throw Failure{fmt::format("a namespace cannot hold '{}'", name),
                  "use a name without a leading underscore"};
  }
  for (auto& [key, item] : values_) {
    runtime.spend();
    if (key != name) continue;
    item = std::move(value);
    return;
  }
  charge_.grow(name.size() + sizeof(values_[0]));
  values_.emplace_back(name, std::move(value));
}

std::optional<Value> global(Runtime& runtime, const std::string& name) {
  static const std::unordered_map<std::string, Native> kFunctions = {
      {"range", range},
      {"dict", dict},
      {"namespace", make_namespace},
      {"cycler", cycler},
      {"joiner", joiner},
      {"raise_exception", raise_exception},
      {"strftime_now", strftime_now},
  };
  const auto found = kFunctions.find(name);
  if (found == kFunctions.end()) return std::nullopt;
  return Value(std::shared_ptr<Object>(runtime.object<Function>(found->second)));
}

}  // namespace antisd::inline text::jinja
