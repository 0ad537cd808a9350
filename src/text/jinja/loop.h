// A for block in progress: its items, and the `loop` variable of its body.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "text/jinja/runtime.h"

namespace antisd::inline text::jinja {

class Loop : public Object, public std::enable_shared_from_this<Loop> {
 public:
  using Accepts = std::function<bool(const Value& item)>;  // the loop's `if`; may be empty
  using Recurse = std::function<Value(const Value& items, int depth)>;  // may be empty

  Loop(std::shared_ptr<const List> items, bool sized, int depth, Accepts accepts, Recurse recurse);

  // The next item, or nothing at the end.
  std::optional<Value> next();

  std::string type_name() const override { return "LoopContext"; }
  Value call(Runtime& runtime, Arguments& arguments) override;
  bool attribute(Runtime& runtime, const std::string& name, Value& value) override;
  void release() override;
  Value cycle(Arguments& arguments) const;
  Value changed(Runtime& runtime, Arguments& arguments);

 private:
  bool fetch();           // reads the next accepted item into ahead_
  std::int64_t length();  // reads ahead to the end if it must

  std::shared_ptr<const List> items_;
  std::size_t at_ = 0;
  const bool sized_;  // the length is known without reading ahead
  const int depth_;
  Accepts accepts_;
  Recurse recurse_;
  std::deque<Value> ahead_;
  std::int64_t index_ = -1;
  std::optional<std::int64_t> length_;
  Value previous_, current_;
  std::optional<Value> last_changed_;
};

}  // namespace antisd::inline text::jinja
