#include "core/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <limits>
#include <new>
#include <string>
#include <system_error>

#include <fmt/format.h>
#include <sched.h>

#include "core/core_share.h"
#include "core/cpu_quota.h"
#include "core/error.h"
#include "core/note.h"
#include "core/start_thread.h"

namespace antisd::inline core {
namespace {

// One parallel_for: shared by the caller and the helpers it enqueued, some of which may start late.
struct Loop {
  Loop(std::size_t count, const std::function<void(std::size_t)>& body)
      : count(count), body(body) {}

  // Takes indices until none is left.
  void run() {
    for (;;) {
      const std::size_t index = next.fetch_add(1);
      if (index >= count) return;
      if (!failed.load(std::memory_order_relaxed)) run_one(index);
      const std::lock_guard lock(mutex);
      if (++finished == count) done.notify_all();
    }
  }

  void run_one(std::size_t index) {
    try {
      body(index);
    } catch (...) {
      failed = true;
      const std::lock_guard lock(mutex);
      if (index < failed_index) {
        failed_index = index;
        error = std::current_exception();
      }
    }
  }

  const std::size_t count;
  const std::function<void(std::size_t)>& body;  // alive until `finished` reaches `count`
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::condition_variable done;
  std::size_t finished = 0;
  std::size_t failed_index = std::numeric_limits<std::size_t>::max();
  std::exception_ptr error;
};

// Once per process: every pool meets the same limit.
void warn_of_fewer(std::size_t started, int asked, const std::string& reason) {
  static std::atomic<bool> warned = false;
  if (warned.exchange(true)) return;
  note(fmt::format("antisd: warning: {} of {} threads: {}; continuing with these", started, asked,
                   reason));
}

}  // namespace

std::thread start_thread(std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& error) {
    throw RunError(fmt::format("a thread cannot be started: {}", error.code().message()),
                   {.remedy = "raise the limits of processes and memory (ulimit -u, ulimit -v), or "
                              "ask for fewer threads"});
  }
}

// If the system gives fewer threads than asked for, the pool uses those: no result depends on their
// number.
ThreadPool::ThreadPool(int threads) {
  threads_.reserve(static_cast<std::size_t>(std::max(threads, 0)));
  try {
    for (int i = 0; i < threads; ++i)
      threads_.push_back(start_thread([this] { work(); }));
  } catch (const RunError& error) {
    if (threads_.empty()) throw;
    warn_of_fewer(threads_.size(), threads, error.problem());
  } catch (const std::bad_alloc&) {
    if (threads_.empty()) throw;
    warn_of_fewer(threads_.size(), threads, "out of memory");
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_)
    thread.join();
}

void ThreadPool::enqueue(std::function<void()> task) {
  if (threads_.empty()) return task();
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void ThreadPool::work() {
  for (;;) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
  }
}

void ThreadPool::parallel_for(std::size_t count, const std::function<void(std::size_t)>& body) {
  if (count == 0) return;
  const auto loop = std::make_shared<Loop>(count, body);
  const std::size_t helpers = std::min(count - 1, threads_.size());
  try {
    for (std::size_t i = 0; i < helpers; ++i)
      enqueue([loop] { loop->run(); });
  } catch (const std::bad_alloc&) {
    // Helpers already enqueued use `body`, so the loop must finish here, with however many there
    // are.
  }
  loop->run();
  std::unique_lock lock(loop->mutex);
  loop->done.wait(lock, [&] { return loop->finished == count; });
  if (loop->error) std::rethrow_exception(loop->error);
}

int available_threads() {
  int threads = static_cast<int>(std::thread::hardware_concurrency());
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) threads = CPU_COUNT(&set);
  if (const std::optional<double> cores = cpu_quota())
    threads = std::min(threads, static_cast<int>(std::ceil(*cores)));
  return own_share(threads);
}

}  // namespace antisd::inline core
