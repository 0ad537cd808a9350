#include "dist/liveness.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>

#include <gmock/gmock.h>

#include "core/testing.h"

namespace antisd::inline dist {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;

constexpr double kSilence = 0.4;

// A store that can die or stop answering.
class FrailStore : public Store {
 public:
  struct Switch {
    std::mutex mutex;
    std::condition_variable changed;
    bool dead = false, stopped = false, dies_at_the_end = false;

    void turn(bool& what, bool on) {
      const std::lock_guard lock(mutex);
      what = on;
      changed.notify_all();
    }
  };

  FrailStore(std::unique_ptr<Store> inner, std::shared_ptr<Switch> state)
      : inner_(std::move(inner)), switch_(std::move(state)) {}

  void set(const std::string& key, const std::string& value) override {
    inner_->set(key, value);
    if (switch_->dies_at_the_end && Beat::decode(value).state == Beat::State::kGone)
      switch_->turn(switch_->dead, true);
  }
  std::optional<std::string> find(const std::string& key) override { return inner_->find(key); }
  bool has(const std::vector<std::string>& keys) override { return inner_->has(keys); }
  std::int64_t add(const std::string& key, std::int64_t value) override {
    return inner_->add(key, value);
  }
  std::unique_ptr<Store> clone() override {
    return std::make_unique<FrailStore>(inner_->clone(), switch_);
  }
  std::vector<std::string> get(const std::vector<std::string>& keys) override {
    std::unique_lock lock(switch_->mutex);
    switch_->changed.wait(lock, [&] { return switch_->dead || !switch_->stopped; });
    if (switch_->dead) throw RunError("connection reset");
    return inner_->get(keys);
  }

 private:
  std::unique_ptr<Store> inner_;
  std::shared_ptr<Switch> switch_;
};

class LivenessTest : public ::testing::Test {
 protected:
  // The ranks of a run of `size`, all beating.
  void start(int size) {
    for (int r = 0; r < size; ++r)
      Liveness::announce(store_, r);
    for (int r = 0; r < size; ++r)
      ranks_.push_back(
          std::make_unique<Liveness>(connection(), LivenessOptions{r, size, kSilence}));
  }
  std::unique_ptr<Store> connection() {
    return std::make_unique<FrailStore>(store_.clone(), switch_);
  }

  // What check() throws when it throws.
  static std::string wait_for_loss(Liveness& rank) {
    return error_of([&] {
      for (int i = 0; i < 20'000; ++i) {
        rank.check();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  }

  MemoryStore store_;
  std::shared_ptr<FrailStore::Switch> switch_ = std::make_shared<FrailStore::Switch>();
  std::vector<std::unique_ptr<Liveness>> ranks_;
};

TEST_F(LivenessTest, RanksThatBeatAreNotMissedAndLeaveTogether) {
  start(3);
  std::this_thread::sleep_for(std::chrono::duration<double>(2 * kSilence));
  std::atomic<int> left = 0;
  std::vector<std::thread> threads;
  for (const std::size_t r : {0, 1}) {
    threads.emplace_back([&, r] {
      ranks_[r]->leave();
      ++left;
      ranks_[r].reset();
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(2 * kSilence));
  EXPECT_EQ(left, 0);  // they wait for rank 2,
  ranks_[2]->check();  // which does not take them for dead
  ranks_[2]->leave();
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(left, 2);
}

// Rank 0 has read that rank 1 needs it no longer, and ends at once.
TEST_F(LivenessTest, AStoreThatDiesAtTheEndIsNotMissed) {
  switch_->dies_at_the_end = true;
  std::atomic<bool> told = false;
  for (int r = 0; r < 2; ++r)
    Liveness::announce(store_, r);
  Liveness first(store_.clone(), {.rank = 0, .size = 2, .silence_s = 60});
  Liveness second(
      connection(),
      {.rank = 1, .size = 2, .silence_s = 60, .on_loss = [&](const RunError&) { told = true; }});
  std::thread leaving([&] { first.leave(); });
  second.leave();
  leaving.join();
  std::this_thread::sleep_for(std::chrono::seconds(2));  // slow to end after that
  EXPECT_FALSE(told);
}

TEST_F(LivenessTest, ARankThatLeftIsMissedByThoseThatWaitForIt) {
  start(2);
  std::string told;
  std::thread leaving([&] { told = error_of([&] { ranks_[1]->leave(); }); });
  std::this_thread::sleep_for(std::chrono::duration<double>(3 * kSilence));
  const std::string expected = "rank 1 has ended its run, but rank 0 waits for it";
  EXPECT_THAT(error_of([&] { ranks_[0]->check_waiting(); }), HasSubstr(expected));
  leaving.join();
  EXPECT_THAT(told, HasSubstr(expected));
}

TEST_F(LivenessTest, ADeadRankIsNamedWithItsPhaseByAll) {
  start(3);
  ranks_[1]->enter("sampling of step 12");
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ranks_[1].reset();  // beats no more
  for (const std::size_t r : {0, 2})
    EXPECT_THAT(wait_for_loss(*ranks_[r]),
                AllOf(HasSubstr("rank 1 has been silent for 0."),
                      HasSubstr("it was in sampling of step 12"), HasSubstr("--resume")));
  EXPECT_THAT(error_of([&] { ranks_[0]->leave(); }), HasSubstr("rank 1 has been silent"));
}

TEST_F(LivenessTest, WhatOneRankNoticesAllKnow) {
  for (const int r : {0, 1, 2})
    Liveness::announce(store_, r);  // rank 2 beats no more
  Liveness patient(connection(), {.rank = 0, .size = 3, .silence_s = 60});
  Liveness watchful(connection(), {.rank = 1, .size = 3, .silence_s = 2});
  EXPECT_THAT(wait_for_loss(patient), HasSubstr("rank 2 has been silent for 2."));
}

TEST_F(LivenessTest, ARankThatFailsTellsWhy) {
  start(3);
  ranks_[0]->fail("no memory for 3 GB");  // holds the store: returns when the others know
  for (const std::size_t r : {1, 2})
    EXPECT_THAT(error_of([&] { ranks_[r]->check(); }),
                HasSubstr("rank 0 failed: no memory for 3 GB"));
  EXPECT_THAT(error_of([&] { ranks_[1]->explain(); }), HasSubstr("rank 0 failed"));
}

TEST_F(LivenessTest, AStoreThatStopsIsRankZerosSilence) {
  start(2);
  ranks_[0]->enter("evaluation");
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  switch_->turn(switch_->stopped, true);
  EXPECT_THAT(wait_for_loss(*ranks_[1]),
              AllOf(HasSubstr("rank 0 has been silent for 0."), HasSubstr("it was in evaluation")));
  ranks_[1].reset();  // while its thread gets no answer
  switch_->turn(switch_->stopped, false);
}

TEST_F(LivenessTest, AStoreThatDiesIsRankZerosDeath) {
  start(2);
  ranks_[0]->enter("evaluation");
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  switch_->turn(switch_->dead, true);
  EXPECT_THAT(wait_for_loss(*ranks_[1]), HasSubstr("rank 0 has died; it was in evaluation"));
}

TEST_F(LivenessTest, ARankThatComputesIsToldByACall) {
  std::promise<std::string> told;
  for (int r = 0; r < 2; ++r)
    Liveness::announce(store_, r);
  Liveness computing(
      connection(),
      {.rank = 0, .size = 2, .silence_s = kSilence, .on_loss = [&](const RunError& error) {
         told.set_value(error.message());
       }});
  EXPECT_THAT(told.get_future().get(), HasSubstr("rank 1 has been silent for 0."));
}

}  // namespace
}  // namespace antisd::inline dist
