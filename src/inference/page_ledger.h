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

  std::int32_t take();            // a free page with one reference; there must be one
  void share(std::int32_t page);  // adds a reference
  void drop(std::int32_t page);   // removes a reference; without any the page is free

 private:
  std::vector<int> references_;
  std::vector<std::int32_t> free_;  // the last one is used next
};

}  // namespace antisd::inline inference
