// The scheduler with a simulated cache: every page records which token of which sequence was
// written to it, so a page that is given out twice, read before it is written or reused too early
// is detected.
#include "inference/scheduler.h"

#include <map>

#include <gmock/gmock.h>

namespace antisd::inline inference {
namespace {

using ::testing::ElementsAre;
using Key = std::pair<int, std::int64_t>;  // group or ~sequence, token

constexpr int kPage = 4;

// Executes plans on a map from cache slots to their content.
class Simulation {
 public:
  Simulation(std::int64_t pages, SchedulerLimits limits, std::vector<GroupShape> groups, int depth)
      : ledger_(pages), scheduler_(ledger_, limits), depth_(depth) {
    for (const GroupShape& shape : groups)
      join(shape);
  }

  int join(const GroupShape& shape) {
    const int group = scheduler_.add(shape);
    if (group == 0) {  // numbers start again: what is in the cache is nobody's
      cache_.clear();
      sequences_.clear();
      next_sequence_ = 0;
    }
    groups_[group] = shape;
    for (int s = 0; s < shape.samples; ++s)
      sequences_[next_sequence_++] = {group, shape.begun.empty() ? 0 : shape.begun[s]};
    return group;
  }

  // Runs to the end; `ends(sequence, tokens)` returns whether a sequence stops there.
  void run(const std::function<bool(int, std::int64_t)>& ends, int most_steps = 100'000) {
    for (int step = 0; !scheduler_.done(); ++step) {
      ASSERT_LT(step, most_steps) << "no end";
      one_step(ends);
      if (::testing::Test::HasFatalFailure()) return;
    }
    while (scheduler_.in_flight() > 0)
      take(ends);
    EXPECT_EQ(ledger_.used(), 0) << "pages were lost";
  }

  // The same with groups that join and are cancelled at random.
  void run_live(const std::vector<GroupShape>& shapes,
                const std::function<std::int64_t(std::uint64_t)>& below,
                const std::function<bool(int, std::int64_t)>& ends) {
    std::size_t next = 0;
    std::vector<int> joined;
    for (int step = 0; next < shapes.size() || !scheduler_.done(); ++step) {
      ASSERT_LT(step, 100'000) << "no end";
      while (next < shapes.size() && (scheduler_.done() || below(4) == 0)) {
        const int group = join(shapes[next++]);
        if (group == 0) joined.clear();
        joined.push_back(group);
      }
      if (!joined.empty() && below(8) == 0) {
        const auto chosen = joined.begin() + below(joined.size());
        if (group_is_alive(*chosen)) scheduler_.cancel(*chosen), ++cancelled;
        joined.erase(chosen);
      }
      if (!scheduler_.done()) one_step(ends);
      if (::testing::Test::HasFatalFailure()) return;
      most_kept = std::max<std::int64_t>(most_kept, scheduler_.sequences());
    }
    while (scheduler_.in_flight() > 0)
      take(ends);
    EXPECT_EQ(ledger_.used(), 0) << "pages were lost";
    EXPECT_EQ(scheduler_.running() + scheduler_.waiting(), 0);
  }

  std::int64_t tokens(int sequence) const { return sequences_.at(sequence).tokens; }
  const Scheduler& scheduler() const { return scheduler_; }

  std::int64_t prefilled = 0, steps = 0, drains = 0, most_running = 0, cancelled = 0, most_kept = 0;
  std::vector<int> ended;

 private:
  struct Simulated {
    int group;
    std::int64_t tokens = 0, position = 0;
    bool has_ended = false;
  };

  void one_step(const std::function<bool(int, std::int64_t)>& ends) {
    const StepPlan plan = scheduler_.plan();
    if (plan.drain) {
      ++drains;
      return take(ends);
    }
    carry_out(plan);
    if (plan.rows > 0) launch(plan.rows);
    if (scheduler_.in_flight() > depth_ || (plan.rows == 0 && scheduler_.in_flight() > 0))
      take(ends);
  }

  bool group_is_alive(int group) const {
    return std::any_of(sequences_.begin(), sequences_.end(), [&](const auto& each) {
      return each.second.group == group && !each.second.has_ended;
    });
  }
  std::int64_t stored(int group) const { return groups_.at(group).prompt_tokens - 1; }
  // Tokens of the prompt belong to the group, whichever sequence reads them.
  Key key(int sequence, std::int64_t token) const {
    const int group = sequences_.at(sequence).group;
    return token < groups_.at(group).prompt_tokens ? Key{group, token} : Key{~sequence, token};
  }
  void expect_stored(const std::vector<std::int32_t>& pages, std::int64_t count,
                     const std::function<Key(std::int64_t)>& expected) {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto found = cache_.find(pages[i / kPage] * kPage + i % kPage);
      ASSERT_TRUE(found != cache_.end());
      ASSERT_EQ(found->second, expected(i)) << "token " << i;
    }
  }

  void carry_out(const StepPlan& plan) {
    for (const PrefillChunk& chunk : plan.chunks) {
      const bool prompt = chunk.sequence < 0;
      const auto& pages =
          prompt ? scheduler_.prompt_pages(chunk.group) : scheduler_.pages_of(chunk.sequence);
      const auto expected = [&](std::int64_t i) {
        return prompt ? Key{chunk.group, i} : key(chunk.sequence, i);
      };
      expect_stored(pages, chunk.begin, expected);
      for (std::int64_t i = chunk.begin; i < chunk.end; ++i)
        cache_[pages[i / kPage] * kPage + i % kPage] = expected(i);
      prefilled += chunk.end - chunk.begin;
    }
    for (const PageCopy& copy : plan.copies)
      for (int i = 0; i < kPage; ++i)
        if (cache_.contains(copy.from * kPage + i))
          cache_[copy.to * kPage + i] = cache_[copy.from * kPage + i];
    for (const SlotChange& change : plan.slots) {
      if (change.kind == SlotChange::Kind::kMove) {
        slots_[change.slot] = slots_[change.from];
        slots_.erase(change.from);
      } else if (change.kind == SlotChange::Kind::kStart) {
        Simulated& s = sequences_[change.sequence];
        s.position = stored(s.group) + s.tokens;
        slots_[change.slot] = {change.sequence, scheduler_.pages_of(change.sequence)};
      } else {
        slots_[change.slot].second.push_back(change.page);
      }
    }
  }

  void launch(int rows) {
    std::vector<std::pair<int, std::vector<std::int32_t>>> step;
    for (int row = 0; row < rows; ++row)
      step.push_back(slots_.at(row));
    queue_.push_back(std::move(step));
    scheduler_.launched();
    ++steps;
    most_running = std::max<std::int64_t>(most_running, rows);
  }

  // A launched step runs as late as possible: when it is taken.
  void take(const std::function<bool(int, std::int64_t)>& ends) {
    const auto step = std::move(queue_.front());
    queue_.pop_front();
    for (const auto& [sequence, pages] : step) {
      Simulated& s = sequences_[sequence];
      ASSERT_LT(s.position / kPage, static_cast<std::int64_t>(pages.size()));
      cache_[pages[s.position / kPage] * kPage + s.position % kPage] = key(sequence, s.position);
      const int index = sequence;
      expect_stored(pages, s.position + 1, [&](std::int64_t i) { return key(index, i); });
      ++s.position;
    }
    const std::vector<int> rows = scheduler_.take();
    ASSERT_EQ(rows.size(), step.size());
    for (std::size_t row = 0; row < rows.size(); ++row) {
      if (rows[row] < 0) continue;
      ASSERT_EQ(rows[row], step[row].first);
      Simulated& s = sequences_[rows[row]];
      ++s.tokens;
      if (!scheduler_.token(rows[row], ends(rows[row], s.tokens))) continue;
      s.has_ended = true;
      ended.push_back(rows[row]);
    }
  }

  PageLedger ledger_;
  Scheduler scheduler_;
  int depth_;
  std::map<int, GroupShape> groups_;
  std::map<int, Simulated> sequences_;
  int next_sequence_ = 0;
  std::map<std::int64_t, Key> cache_;
  std::map<int, std::pair<int, std::vector<std::int32_t>>> slots_;
  std::deque<std::vector<std::pair<int, std::vector<std::int32_t>>>> queue_;
};

const auto kNever = [](int, std::int64_t) { return false; };

TEST(PageLedger, CountsReferences) {
  PageLedger ledger(2);
  const std::int32_t first = ledger.take(), second = ledger.take();
  EXPECT_THAT((std::vector<std::int32_t>{first, second}), ElementsAre(0, 1));
  ledger.share(first);
  ledger.drop(first);
  EXPECT_EQ(ledger.free(), 0);
  ledger.drop(first);
  EXPECT_EQ(ledger.free(), 1);
  EXPECT_EQ(ledger.take(), first);
}

TEST(Scheduler, AGroupsPromptIsComputedOnce) {
  for (const std::int64_t prompt : {1, 2, 4, 5, 8, 9, 11}) {
    Simulation run(100, {kPage, 16, 1000}, {{prompt, 8, 6}, {prompt + 3, 3, 6}}, 0);
    run.run(kNever);
    EXPECT_EQ(run.prefilled, (prompt - 1) + (prompt + 2)) << prompt;
    EXPECT_EQ(run.steps, 6);
    EXPECT_EQ(run.scheduler().preemptions(), 0);
  }
}

TEST(Scheduler, PromptsComeInChunksBetweenSteps) {
  Simulation run(100, {kPage, 4, 5}, {{3, 1, 10}, {21, 1, 10}}, 0);
  run.run(kNever);
  EXPECT_EQ(run.prefilled, 22);
  // 5 tokens per step: the second sequence starts with the fifth step.
  EXPECT_EQ(run.steps, 14);
}

TEST(Scheduler, AFinishedSequencesPlaceIsTakenAtOnce) {
  // 6 sequences over 2 slots; the odd ones end after 2 tokens, the even ones after 6.
  Simulation run(100, {kPage, 2, 100}, {{3, 6, 6}}, 0);
  run.run([](int sequence, std::int64_t tokens) { return sequence % 2 == 1 && tokens == 2; });
  EXPECT_EQ(run.most_running, 2);
  // 0 and then 3 beside 1 and then 2, 4 beside 5: a slot is empty only at the end.
  EXPECT_EQ(run.steps, 14);
}

TEST(Scheduler, TheYoungestGoesBackWherePagesRunOut) {
  // Each sequence ends with 6 pages (21 + 3 tokens); 10 pages hold one and a half.
  Simulation run(10, {kPage, 8, 100}, {{3, 1, 21}, {3, 1, 21}, {3, 1, 21}}, 0);
  run.run(kNever);
  EXPECT_GT(run.scheduler().preemptions(), 0);
  EXPECT_THAT(run.ended, ElementsAre(0, 1, 2));
  for (int s = 0; s < 3; ++s)
    EXPECT_EQ(run.tokens(s), 21);
}

TEST(Scheduler, ThePoolNeedNotBeLargerThanOneSequence) {
  for (const std::int64_t prompt : {1, 4, 5, 9}) {
    const std::int64_t pages = Scheduler::pages_needed(prompt + 17, kPage);
    Simulation run(pages, {kPage, 8, 3}, {{prompt, 5, 17}, {prompt, 1, 17}}, 0);
    run.run(kNever);
    for (int s = 0; s < 6; ++s)
      EXPECT_EQ(run.tokens(s), 17);
  }
}

// With the pages that it says it wants, slots are as full as with any number of them.
TEST(Scheduler, WithThePagesThatItWantsNothingWaits) {
  const auto steps = [](std::int64_t pages, const SchedulerLimits& limits,
                        const std::vector<GroupShape>& groups, int depth) {
    Simulation run(pages, limits, groups, depth);
    run.run([](int sequence, std::int64_t tokens) { return tokens >= 3 + sequence * 7 % 20; });
    EXPECT_EQ(run.scheduler().preemptions(), 0);
    EXPECT_EQ(run.drains, 0);
    return run.steps;
  };
  for (const int slots : {1, 4, 24}) {
    for (const std::int64_t prompt : {1, 7, 8, 30}) {
      for (const int depth : {0, 1}) {
        const SchedulerLimits limits{kPage, slots, 1000};
        const std::vector<GroupShape> groups = {{prompt, 8, 22}, {prompt + 2, 8, 20}, {3, 8, 23}};
        const std::int64_t wanted = Scheduler::pages_wanted(groups, limits);
        EXPECT_EQ(steps(wanted, limits, groups, depth), steps(10'000, limits, groups, depth))
            << slots << " slots, prompts of " << prompt;
      }
    }
  }
  // Worked by hand: 23 stored tokens take 6 pages of 4; 8 sequences, 2 groups, a quarter of 8.
  const std::vector<GroupShape> two(2, {10, 4, 14});
  EXPECT_EQ(Scheduler::pages_wanted(two, {kPage, 16, 100}), 8 * 6 + 2 + 2 + 1);
  EXPECT_EQ(Scheduler::pages_wanted(two, {kPage, 5, 100}), 5 * 6 + 2 + 2 + 1);
}

// Random groups, pools, slots and ends, with or without a step in flight. Every sequence gets its
// tokens, no wrong key is read, and all pages are freed.
TEST(Scheduler, RandomRunsKeepTheCacheRight) {
  std::uint64_t state = 12345;
  const auto below = [&](std::uint64_t bound) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::int64_t>((state >> 33) % bound);
  };
  std::int64_t preemptions = 0, drains = 0;
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<GroupShape> groups;
    std::int64_t need = 0;
    for (std::int64_t g = 1 + below(6); g-- > 0;) {
      groups.push_back({1 + below(20), static_cast<int>(1 + below(6)), 1 + below(25)});
      need = std::max(need, Scheduler::pages_needed(
                                groups.back().prompt_tokens + groups.back().max_new_tokens, kPage));
    }
    const std::uint64_t salt = state;
    const auto length = [&](int sequence) {
      return static_cast<std::int64_t>(1 + (salt >> 7) % 13 + sequence * 5 % 11);
    };
    const auto ends = [&](int sequence, std::int64_t tokens) { return tokens >= length(sequence); };
    const int depth = trial % 3;
    Simulation run(need + below(12), {kPage, static_cast<int>(1 + below(9)), 1 + below(12)}, groups,
                   depth);
    run.run(ends);
    if (HasFatalFailure()) FAIL() << "trial " << trial;
    int sequence = 0;
    for (const GroupShape& group : groups)
      for (int s = 0; s < group.samples; ++s, ++sequence)
        ASSERT_EQ(run.tokens(sequence), std::min(group.max_new_tokens, length(sequence)));
    preemptions += run.scheduler().preemptions();
    drains += run.drains;
  }
  EXPECT_GT(preemptions, 100);
  EXPECT_GT(drains, 20);
}

// Samples that begin with tokens of an earlier run, and leave after some more: the cache is right,
// and each has as many tokens as it may.
TEST(Scheduler, SamplesGoOnWhereTheyPaused) {
  std::uint64_t state = 777;
  const auto below = [&](std::uint64_t bound) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::int64_t>((state >> 33) % bound);
  };
  std::int64_t preemptions = 0, paused = 0;
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<GroupShape> groups;
    std::int64_t need = 0;
    for (std::int64_t g = 1 + below(6); g-- > 0;) {
      GroupShape shape{1 + below(20), static_cast<int>(1 + below(6)), 1 + below(25)};
      shape.pause_after = below(3) * below(9);
      for (int s = 0; s < shape.samples && g % 2 == 0; ++s)
        shape.begun.push_back(below(static_cast<std::uint64_t>(shape.max_new_tokens)));
      need = std::max(need, Scheduler::pages_needed(shape.longest(), kPage));
      groups.push_back(shape);
    }
    Simulation run(need + below(12), {kPage, static_cast<int>(1 + below(9)), 1 + below(12)}, groups,
                   trial % 3);
    run.run(kNever);
    if (HasFatalFailure()) FAIL() << "trial " << trial;
    int sequence = 0;
    for (const GroupShape& group : groups) {
      for (int s = 0; s < group.samples; ++s, ++sequence) {
        const std::int64_t had = group.begun.empty() ? 0 : group.begun[static_cast<std::size_t>(s)];
        const std::int64_t most = group.pause_after > 0 ? had + group.pause_after : 1000;
        ASSERT_EQ(run.tokens(sequence), std::min(group.max_new_tokens, most));
        paused += most < group.max_new_tokens;
      }
    }
    preemptions += run.scheduler().preemptions();
  }
  EXPECT_GT(preemptions, 50);
  EXPECT_GT(paused, 200);
  // By hand: 10 + 6 - 1 and 10 + 9 - 1 stored tokens take 4 and 5 pages; a quarter of 2 sequences.
  const GroupShape two{
      .prompt_tokens = 10, .samples = 2, .max_new_tokens = 14, .begun = {2, 5}, .pause_after = 4};
  EXPECT_EQ(Scheduler::pages_wanted({&two, 1}, {kPage, 16, 100}), 4 + 5 + 1 + 1 + 1);
}

// Groups join and leave at any time. Those that stay get their tokens, the cache stays right, and
// what is over is forgotten.
TEST(Scheduler, GroupsJoinAndLeaveWhileOthersDecode) {
  std::uint64_t state = 777;
  const auto below = [&](std::uint64_t bound) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::int64_t>((state >> 33) % bound);
  };
  std::int64_t preemptions = 0, cancelled = 0, most_kept = 0, all = 0;
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<GroupShape> shapes;
    for (int g = 0; g < 100; ++g)
      shapes.push_back({1 + below(20), static_cast<int>(1 + below(4)), 1 + below(20)});
    Simulation run(12 + below(20), {kPage, static_cast<int>(1 + below(9)), 1 + below(12)}, {},
                   trial % 3);
    run.run_live(shapes, below,
                 [](int sequence, std::int64_t tokens) { return tokens >= 2 + sequence * 5 % 11; });
    if (HasFatalFailure()) FAIL() << "trial " << trial;
    preemptions += run.scheduler().preemptions();
    cancelled += run.cancelled;
    most_kept = std::max(most_kept, run.most_kept);
    all = std::max(all, std::ssize(run.ended));
  }
  EXPECT_GT(preemptions, 50);
  EXPECT_GT(cancelled, 300);
  EXPECT_GT(all, 100);
  // A group's length is known: few pages and slots bound how many are alive at a time, and the
  // queue is the rest. 250 sequences a trial, and never all of them.
  EXPECT_LT(most_kept, 240);
}

TEST(Scheduler, WhatIsOverIsForgotten) {
  Simulation run(100, {kPage, 8, 100}, {}, 1);
  for (int round = 0; round < 1000; ++round) {
    run.join({3, 4, 5});
    run.run(kNever);
    ASSERT_LE(run.scheduler().sequences(), 4);
  }
}

}  // namespace
}  // namespace antisd::inline inference
