// What the groups of one process share: its store, who lives, and whether a connection broke. Here
// c10d's works are waited for and its errors become ours.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "dist/communicator.h"
#include "dist/group/process_group.h"
#include "dist/group/tcp_store.h"
#include "dist/liveness.h"

namespace antisd::inline dist {

// Seconds that calls have waited, in their order. A backward pass waits in a thread of its own.
class WaitLog {
 public:
  void add(double seconds) {
    const std::lock_guard lock(mutex_);
    waits_.push_back(seconds);
  }
  std::vector<double> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(waits_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<double> waits_;
};

class Ties {
 public:
  // Meets the other ranks.
  Ties(const Place& place, const GroupOptions& options);

  Liveness& liveness() { return *liveness_; }
  const TcpStore& store() const { return *store_; }
  const GroupOptions& options() const { return options_; }
  const std::string& address() const { return address_; }
  // The connections are in an unknown state: works may be under way that never end.
  bool broken() const { return broken_; }

  // Makes a call of c10d. RunError, with the lost rank, where that throws.
  template <typename Call>
  auto start(const Call& call) {
    try {
      return call();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      report_broken(first_line(error));
    }
  }

  // Waits as long as all ranks live, and notes the seconds in `waits`.
  void wait(c10d::Work& work, WaitLog& waits);

  void leave();
  void fail(const std::string& message) noexcept;

 private:
  [[noreturn]] void report_broken(const std::string& problem);
  // Ends the process by on_loss where there is one. What c10d has under way goes on reading and
  // writing memory, which must not be freed before.
  [[noreturn]] void lose(const RankLost& loss);

  const GroupOptions options_;
  const std::string address_;
  std::shared_ptr<TcpStore> store_;
  std::unique_ptr<Liveness> liveness_;
  bool broken_ = false;
};

// A work of c10d. When it is waited for, `arrive` is called after it.
class Moving : public Transfer {
 public:
  using WorkPointer = c10::intrusive_ptr<c10d::Work>;

  Moving(std::shared_ptr<Ties> ties, std::shared_ptr<WaitLog> waits, WorkPointer work,
         std::function<void()> arrive);
  // The memory may be freed after this: not before the work has ended, or a rank is lost.
  ~Moving() override;

  void wait() override;

 private:
  void finish();

  std::shared_ptr<Ties> ties_;
  std::shared_ptr<WaitLog> waits_;
  WorkPointer work_;
  std::function<void()> arrive_;
};

}  // namespace antisd::inline dist
