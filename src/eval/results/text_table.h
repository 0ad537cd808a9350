// Text columns for a terminal, and the format of figures in them.
#pragma once

#include <string>
#include <vector>

#include "eval/results/interval.h"

namespace antisd::inline eval {

// The first line is the header. The first column is left-aligned, the others right-aligned.
class TextTable {
 public:
  void add(std::vector<std::string> line) { lines_.push_back(std::move(line)); }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> lines_;
};

std::string percent_text(double share);               // "57.4", "-" for none
std::string interval_text(const Interval& interval);  // "[51.0, 63.2]", "-" for none

}  // namespace antisd::inline eval
