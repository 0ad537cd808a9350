// A fixed set of threads that run loops and tasks.
//
//   ThreadPool pool(4);
//   pool.parallel_for(rows.size(), [&](std::size_t i) { rows[i] = work(i); });
//   std::future<int> answer = pool.submit([] { return 42; });
//
// parallel_for may be called from several threads and from inside a task: the caller works too, so
// it never waits for a free thread. Once all running indices have ended, the exception of the
// lowest index that threw is rethrown in the caller; indices not started are dropped.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace antisd::inline core {

class ThreadPool {
 public:
  // 0 threads: everything runs in the caller.
  explicit ThreadPool(int threads);
  ~ThreadPool();  // runs all submitted tasks, then joins
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(threads_.size()); }

  void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body);

  template <typename Task>
  std::future<std::invoke_result_t<Task>> submit(Task task) {
    auto packaged =
        std::make_shared<std::packaged_task<std::invoke_result_t<Task>()>>(std::move(task));
    auto future = packaged->get_future();
    enqueue([packaged] { (*packaged)(); });
    return future;
  }

 private:
  void enqueue(std::function<void()> task);
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

// The CPUs for this process: affinity mask, cgroup's quota, its share (core_share.h); at least 1.
int available_threads();

}  // namespace antisd::inline core
