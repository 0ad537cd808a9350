// Which pages of a cache are free and how many sequences share each of the others.
#pragma once

#include <cstdint>
#include <vector>

namespace antisd::inline inference {

class PageLedger {
 public:
  explicit PageLedger(std::int64_t pages);

  std::int64_t total() const { return static_cast<std::int64_t>(references_.size()); }
  std::int64_t free() const { return static_cast<std::int64_t>(free_.size()); }
  std::int64_t used() const { return total() - free(); }

  std::int32_t take();            // a free page, referenced once; there must be one
  void share(std::int32_t page);  // one reference more
  void drop(std::int32_t page);   // one less; free at none

 private:
  std::vector<int> references_;
  std::vector<std::int32_t> free_;  // the next one last
};

}  // namespace antisd::inline inference
