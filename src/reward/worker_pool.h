// At most so many processes that grade, shared by the threads that ask them.
//
//   WorkerPool<LineProcess> pool(4);
//   std::unique_ptr<LineProcess> worker = pool.acquire();  // waits for a free place
//   if (!worker) worker = std::make_unique<LineProcess>("python3 my_reward.py", "reward.command");
//   pool.give_back(std::move(worker));                     // nothing: it is to be replaced
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace antisd::inline reward {

template <typename Worker>
class WorkerPool {
 public:
  explicit WorkerPool(int size) : size_(size) {}

  // An idle worker, or nothing: the caller makes one. Either way it holds a place of the pool.
  std::unique_ptr<Worker> acquire() {
    std::unique_lock lock(mutex_);
    free_.wait(lock, [&] { return out_ < size_; });
    ++out_;
    if (idle_.empty()) return nullptr;
    std::unique_ptr<Worker> worker = std::move(idle_.back());
    idle_.pop_back();
    return worker;
  }

  void give_back(std::unique_ptr<Worker> worker) {
    {
      const std::lock_guard lock(mutex_);
      --out_;
      if (worker) idle_.push_back(std::move(worker));
    }
    free_.notify_one();
  }

 private:
  const int size_;
  std::mutex mutex_;
  std::condition_variable free_;
  std::vector<std::unique_ptr<Worker>> idle_;
  int out_ = 0;
};

}  // namespace antisd::inline reward
