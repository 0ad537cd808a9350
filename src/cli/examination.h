// One line of `doctor`: something that the machine has or lacks.
#pragma once

#include <string>

namespace antisd::inline cli {

struct Examination {
  std::string topic;
  bool good;
  std::string state;
  std::string remedy;  // for what is missing
};

}  // namespace antisd::inline cli
