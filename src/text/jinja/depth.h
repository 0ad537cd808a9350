// The interpreter's limit on recursion.
#pragma once

#include "text/jinja/interpreter.h"

namespace antisd::inline text::jinja {

inline constexpr int kMaxDepth = 1200;  // of nested expressions, statements and calls

class Interpreter::Depth {
 public:
  explicit Depth(Interpreter& interpreter) : interpreter_(interpreter) {
    if (++interpreter_.depth_ > kMaxDepth) {
      --interpreter_.depth_;
      throw Failure{"the template's macros or loops call themselves too often",
                    "fix the recursion, or flatten the value it walks"};
    }
  }
  ~Depth() { --interpreter_.depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  Interpreter& interpreter_;
};

}  // namespace antisd::inline text::jinja
