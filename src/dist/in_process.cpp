#include "dist/in_process.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "core/check.h"
#include "core/error.h"

namespace antisd::inline dist {
namespace {

// Where the threads of one communicator meet. A call has two halves: everybody shows its memory,
// then everybody copies what it needs, and nobody goes on before all have copied.
class Meeting {
 public:
  explicit Meeting(int size) : size_(size), shown_(static_cast<std::size_t>(size)) {}

  void show_and_copy(int rank, const void* own,
                     const std::function<void(const std::vector<const void*>&)>& copy) {
    shown_[static_cast<std::size_t>(rank)] = own;
    arrive();
    copy(shown_);
    arrive();
  }

  // Also for the meetings that were made of this one.
  void fail() {
    const std::lock_guard lock(mutex_);
    failed_ = true;
    changed_.notify_all();
    for (const auto& [ranks, part] : parts_)
      part->fail();
    for (const auto& [n, beside] : besides_)
      beside->fail();
  }

  // The meeting of some ranks; the same for all that ask with one list.
  std::shared_ptr<Meeting> part(const std::vector<int>& ranks) {
    const std::lock_guard lock(mutex_);
    return found_or_made(parts_[ranks], static_cast<int>(ranks.size()));
  }
  // The n-th further meeting of all.
  std::shared_ptr<Meeting> beside(int n) {
    const std::lock_guard lock(mutex_);
    return found_or_made(besides_[n], size_);
  }

 private:
  std::shared_ptr<Meeting> found_or_made(std::shared_ptr<Meeting>& meeting, int size) const {
    if (!meeting) {
      meeting = std::make_shared<Meeting>(size);
      meeting->failed_ = failed_;
    }
    return meeting;
  }

  void arrive() {
    std::unique_lock lock(mutex_);
    const std::int64_t round = round_;
    if (++arrived_ == size_) {
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return failed_ || round_ != round; });
    if (round_ == round) throw RankLost("another rank has failed");
  }

  const int size_;
  std::vector<const void*> shown_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  std::int64_t round_ = 0;
  bool failed_ = false;
  std::map<std::vector<int>, std::shared_ptr<Meeting>> parts_;
  std::map<int, std::shared_ptr<Meeting>> besides_;
};

class Copied : public Transfer {
 public:
  void wait() override {}
};

class ThreadRank : public Communicator {
 public:
  ThreadRank(std::shared_ptr<Meeting> meeting, int rank, int size)
      : meeting_(std::move(meeting)), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void enter(const std::string&) override {}

  std::vector<std::string> gather(const std::string& own) override {
    std::vector<std::string> all;
    meeting_->show_and_copy(rank_, &own, [&](const std::vector<const void*>& shown) {
      for (const void* one : shown)
        all.push_back(*static_cast<const std::string*>(one));
    });
    return all;
  }

  std::unique_ptr<Transfer> exchange_parts(const Parts& parts) override {
    return copy(parts, rank_ * parts.part_bytes);
  }
  std::unique_ptr<Transfer> collect_parts(const Parts& parts) override { return copy(parts, 0); }

  std::unique_ptr<Communicator> among(const std::vector<int>& ranks) override {
    const auto own = std::ranges::find(ranks, rank_);
    ANTISD_CHECK(own != ranks.end() && std::ranges::is_sorted(ranks));
    return std::make_unique<ThreadRank>(meeting_->part(ranks),
                                        static_cast<int>(own - ranks.begin()),
                                        static_cast<int>(ranks.size()));
  }
  std::unique_ptr<Communicator> beside() override {
    return std::make_unique<ThreadRank>(meeting_->beside(besides_++), rank_, size_);
  }
  std::vector<double> take_waits() override { return {}; }  // threads are for tests, not for speed

 private:
  // Part r of `received` are the bytes from `offset` on of what rank r shows.
  std::unique_ptr<Transfer> copy(const Parts& parts, std::int64_t offset) {
    ANTISD_CHECK(parts.kind == MemoryKind::kHost);
    meeting_->show_and_copy(rank_, parts.own, [&](const std::vector<const void*>& shown) {
      auto* to = static_cast<char*>(parts.received);
      for (std::size_t r = 0; r < shown.size(); ++r, to += parts.part_bytes) {
        const char* from = static_cast<const char*>(shown[r]) + offset;
        if (from != to) std::memcpy(to, from, static_cast<std::size_t>(parts.part_bytes));
      }
    });
    return std::make_unique<Copied>();
  }

  std::shared_ptr<Meeting> meeting_;
  int rank_, size_;
  int besides_ = 0;
};

}  // namespace

Communicator& one_rank() {
  static const std::unique_ptr<Communicator> one = alone();
  return *one;
}

void run_ranks(int size, const std::function<void(Communicator& ranks)>& work) {
  const auto meeting = std::make_shared<Meeting>(size);
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadRank ranks(meeting, rank, size);
      try {
        work(ranks);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
        meeting->fail();
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace antisd::inline dist
