#include "text/jinja/loop.h"

#include <fmt/format.h>

namespace antisd::inline text::jinja {
namespace {

// loop.cycle and loop.changed
class LoopMethod : public Object {
 public:
  LoopMethod(std::shared_ptr<Loop> loop, bool cycles) : loop_(std::move(loop)), cycles_(cycles) {}
  std::string type_name() const override { return "method"; }
  Value call(Runtime& runtime, Arguments& arguments) override {
    return cycles_ ? loop_->cycle(arguments) : loop_->changed(runtime, arguments);
  }

 private:
  std::shared_ptr<Loop> loop_;
  bool cycles_;
};

}  // namespace

Loop::Loop(std::shared_ptr<const List> items, bool sized, int depth, Accepts accepts,
           Recurse recurse)
    : items_(std::move(items)),
      sized_(sized),
      depth_(depth),
      accepts_(std::move(accepts)),
      recurse_(std::move(recurse)) {}

bool Loop::fetch() {
  while (items_ != nullptr && at_ < items_->items.size()) {
    const Value& item = items_->items[at_++];
    if (accepts_ && !accepts_(item)) continue;
    ahead_.push_back(item);
    return true;
  }
  return false;
}

std::optional<Value> Loop::next() {
  if (ahead_.empty() && !fetch()) return std::nullopt;
  previous_ = std::move(current_);
  current_ = std::move(ahead_.front());
  ahead_.pop_front();
  ++index_;
  return current_;
}

std::int64_t Loop::length() {
  if (length_) return *length_;
  if (sized_ && items_ != nullptr) {
    length_ = static_cast<std::int64_t>(items_->items.size());
    return *length_;
  }
  while (fetch()) {
  }
  length_ = index_ + 1 + static_cast<std::int64_t>(ahead_.size());
  return *length_;
}

Value Loop::call(Runtime&, Arguments& arguments) {
  const Bound bound("loop", arguments, {"iterable"}, 1);
  if (!recurse_) {
    fail("The loop must have the 'recursive' marker to be called recursively.");
  }
  return recurse_(bound.at(0), depth_ + 1);
}

bool Loop::attribute(Runtime& runtime, const std::string& name, Value& value) {
  if (name == "index") {
    value = Value::integer(index_ + 1);
  } else if (name == "index0") {
    value = Value::integer(index_);
  } else if (name == "first") {
    value = Value::boolean(index_ == 0);
  } else if (name == "last") {
    value = Value::boolean(ahead_.empty() && !fetch());
  } else if (name == "length") {
    value = Value::integer(length());
  } else if (name == "revindex") {
    value = Value::integer(length() - index_);
  } else if (name == "revindex0") {
    value = Value::integer(length() - index_ - 1);
  } else if (name == "depth") {
    value = Value::integer(depth_ + 1);
  } else if (name == "depth0") {
    value = Value::integer(depth_);
  } else if (name == "previtem") {
    value = index_ <= 0 ? runtime.undefined_hint("there is no previous item") : previous_;
  } else if (name == "nextitem") {
    const bool none = ahead_.empty() && !fetch();
    value = none ? runtime.undefined_hint("there is no next item") : ahead_.front();
  } else if (name == "cycle" || name == "changed") {
    value = Value(
        std::shared_ptr<Object>(runtime.object<LoopMethod>(shared_from_this(), name == "cycle")));
  } else {
    return false;
  }
  return true;
}

void Loop::release() {
  items_.reset();
  accepts_ = nullptr;
  recurse_ = nullptr;
  ahead_.clear();
  previous_ = current_ = Value();
  last_changed_.reset();
}

Value Loop::cycle(Arguments& arguments) const {
  if (arguments.positional.empty()) fail("no items for cycling given");
  const auto count = static_cast<std::int64_t>(arguments.positional.size());
  return arguments.positional[static_cast<std::size_t>((index_ < 0 ? 0 : index_) % count)];
}

Value Loop::changed(Runtime& runtime, Arguments& arguments) {
  const Value now = runtime.tuple(arguments.positional);
  if (last_changed_ && equal(runtime, *last_changed_, now)) return Value::boolean(false);
  last_changed_ = now;
  return Value::boolean(true);
}

}  // namespace antisd::inline text::jinja
