#include "reward/visible_text.h"

#include <algorithm>

namespace antisd::inline reward {

std::string visible_text(std::string_view response) {
  static constexpr std::string_view kOpen = "<think>", kClose = "</think>";
  std::string visible;
  bool thinking = false;
  std::size_t at = 0;
  while (at < response.size()) {
    const std::size_t tag = std::min(response.find('<', at), response.size());
    if (!thinking) visible += response.substr(at, tag - at);
    const std::string_view rest = response.substr(tag);
    if (rest.starts_with(kOpen)) {
      thinking = true;
      at = tag + kOpen.size();
    } else if (rest.starts_with(kClose)) {
      if (thinking)
        visible += '\n';
      else
        visible.clear();
      thinking = false;
      at = tag + kClose.size();
    } else {
      if (!thinking) visible += rest.substr(0, 1);
      at = tag + 1;
    }
  }
  return visible;
}

}  // namespace antisd::inline reward
