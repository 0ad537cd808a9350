// Items by growing numbers, of which the oldest can be forgotten: a list that is used for a long
// time holds only what is alive.
#pragma once

#include <cstddef>
#include <deque>
#include <utility>

namespace antisd::inline inference {

template <typename Item>
class NumberedList {
 public:
  int add(Item item) {
    items_.push_back(std::move(item));
    return end() - 1;
  }
  void forget_first() {
    items_.pop_front();
    first_ = items_.empty() ? 0 : first_ + 1;  // an empty list counts from 0 again
  }

  Item& operator[](int number) { return items_[static_cast<std::size_t>(number - first_)]; }
  const Item& operator[](int number) const {
    return items_[static_cast<std::size_t>(number - first_)];
  }
  bool empty() const { return items_.empty(); }
  int begin() const { return first_; }
  int end() const { return first_ + static_cast<int>(items_.size()); }

 private:
  std::deque<Item> items_;
  int first_ = 0;
};

}  // namespace antisd::inline inference
