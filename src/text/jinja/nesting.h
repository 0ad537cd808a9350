// The parser's limit on nesting.
#pragma once

#include <fmt/format.h>

#include "text/jinja/parser.h"

namespace antisd::inline text::jinja {

class Parser::Nesting {
 public:
  explicit Nesting(Parser& parser) : parser_(parser) {
    if (++parser_.nesting_ > kMaxNesting) {
      parser_.fail(fmt::format("more than {} levels of nesting", kMaxNesting));
    }
  }
  ~Nesting() { --parser_.nesting_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  Parser& parser_;
};

}  // namespace antisd::inline text::jinja
