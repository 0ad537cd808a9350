// Candidate merges of a long piece: lowest rank first, leftmost first within a rank. Positions
// mostly arrive in order, so a rank's queue is a plain list until one does not; then it is a heap.
// So long repetitive pieces take linear time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace antisd::inline text {

class MergeQueue {
 public:
  struct Candidate {
    std::uint32_t rank;
    std::uint32_t position;
  };

  static constexpr std::uint32_t kNone = UINT32_MAX;

  // `list_of_rank` is scratch memory that outlives the queue: kNone for every rank, before and
  // after.
  explicit MergeQueue(std::vector<std::uint32_t>& list_of_rank) : list_of_rank_(list_of_rank) {}
  ~MergeQueue() {
    for (const List& list : lists_)
      list_of_rank_[list.rank] = kNone;
  }
  MergeQueue(const MergeQueue&) = delete;
  MergeQueue& operator=(const MergeQueue&) = delete;

  bool empty() const { return active_.empty(); }

  void push(std::uint32_t rank, std::uint32_t position) {
    std::uint32_t& index = list_of_rank_[rank];
    if (index == kNone) {
      index = static_cast<std::uint32_t>(lists_.size());
      lists_.push_back({.rank = rank});
    }
    List& list = lists_[index];
    if (list.size() == 0) active_.push(rank);
    if (!list.is_heap && !list.positions.empty() && position < list.positions.back()) {
      list.positions.erase(list.positions.begin(), list.positions.begin() + list.done);
      list.done = 0;
      list.is_heap = true;
      std::make_heap(list.positions.begin(), list.positions.end(), std::greater<>());
    }
    list.positions.push_back(position);
    if (list.is_heap) {
      std::push_heap(list.positions.begin(), list.positions.end(), std::greater<>());
    }
  }

  Candidate pop() {
    const std::uint32_t rank = active_.top();
    List& list = lists_[list_of_rank_[rank]];
    std::uint32_t position;
    if (list.is_heap) {
      std::pop_heap(list.positions.begin(), list.positions.end(), std::greater<>());
      position = list.positions.back();
      list.positions.pop_back();
    } else {
      position = list.positions[list.done++];
    }
    if (list.size() == 0) {
      active_.pop();
      list.positions.clear();
      list.done = 0;
      list.is_heap = false;
    }
    return {rank, position};
  }

 private:
  struct List {
    std::uint32_t rank;
    std::vector<std::uint32_t> positions = {};
    std::size_t done = 0;
    bool is_heap = false;
    std::size_t size() const { return positions.size() - done; }
  };

  std::vector<std::uint32_t>& list_of_rank_;
  std::vector<List> lists_;
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> active_;
};

}  // namespace antisd::inline text
