// Decides which sequences decode, which wait, and where their keys and values are: host logic
// without tensors. No decision depends on time, so one seed gives one result.
//
//   Scheduler scheduler(pages, limits, groups);
//   while (!scheduler.done()) {
//     const StepPlan plan = scheduler.plan();   // chunks, copies, slots, in this order
//     if (plan.rows > 0) launch(plan.rows), scheduler.launched();
//     for (int sequence : scheduler.take()) scheduler.token(sequence, stopped);
//   }
//
// Of a prompt of p tokens, the first p - 1 are computed once per group; the last one is the first
// input that each sample decodes, so decoding has no special case. Samples share the prompt's full
// pages and copy the partial one. Sequences are ordered by group, then sample: the lowest waiting
// one is admitted first, and when pages run out the highest is preempted. It keeps its sampled
// tokens; its keys and values are recomputed. So are those of a sample that has begun before.
//
// Groups may also join and be cancelled between steps; the scheduler forgets the oldest ones once
// they are over.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <span>
#include <vector>

#include "inference/numbered_list.h"
#include "inference/page_ledger.h"

namespace antisd::inline inference {

struct GroupShape {
  std::int64_t prompt_tokens = 1;
  int samples = 1;
  std::int64_t max_new_tokens = 1;
  std::vector<std::int64_t> begun = {};  // tokens that each sample has already; empty: none has any
  std::int64_t pause_after = 0;          // new tokens after which a sample leaves; 0: at its end

  // Tokens with which a sample leaves at the latest.
  std::int64_t last_token(int sample) const;
  // Of prompt and response.
  std::int64_t longest() const;
};

struct SchedulerLimits {
  int page_tokens = 32;
  int slots = 256;                          // sequences decoded at a time
  std::int64_t prefill_chunk_tokens = 512;  // between two decode steps
};

// Tokens [begin, end) of a group's prompt, or of one of its samples (prompt and response).
struct PrefillChunk {
  int group = 0;
  int sequence = -1;  // -1: the prompt
  std::int64_t begin = 0, end = 0;
};

struct PageCopy {
  std::int32_t from = 0, to = 0;
};

struct SlotChange {
  enum class Kind { kStart, kMove, kAppendPage };
  Kind kind = Kind::kStart;
  int slot = 0;
  int from = 0;           // kMove
  int sequence = 0;       // kStart
  std::int32_t page = 0;  // kAppendPage
};

struct StepPlan {
  bool drain = false;  // pages ran out with steps in flight: take one, plan again
  std::vector<PrefillChunk> chunks;
  std::vector<PageCopy> copies;
  std::vector<SlotChange> slots;
  int rows = 0;  // slots [0, rows) decode
};

class Scheduler {
 public:
  Scheduler(PageLedger& pages, SchedulerLimits limits, std::span<const GroupShape> groups = {});

  // Appends a group, behind all others, and returns its number. Not between plan() and launched().
  int add(const GroupShape& shape);
  // Ends a group's sequences; tokens of theirs that are in flight are surplus. The same rule.
  void cancel(int group);

  // Pages that a single sequence of `tokens` tokens needs.
  static std::int64_t pages_needed(std::int64_t tokens, int page_tokens) {
    return (tokens - 1 + page_tokens - 1) / page_tokens + 1;
  }
  // Pages with which no sequence of these groups waits or is preempted for want of them.
  static std::int64_t pages_wanted(std::span<const GroupShape> groups,
                                   const SchedulerLimits& limits);

  StepPlan plan();
  void launched();  // a step over the planned rows was launched
  // The oldest step in flight has finished: its sequences by row, -1 for a surplus token.
  std::vector<int> take();
  // Adds a token; `stopped` if it ends the sequence. Returns whether the sequence has ended.
  bool token(int sequence, bool stopped);

  bool done() const { return unfinished_ == 0; }
  int in_flight() const { return static_cast<int>(in_flight_.size()); }
  int sequences() const { return sequences_.end() - sequences_.begin(); }
  int running() const { return static_cast<int>(slots_.size()); }
  int waiting() const { return static_cast<int>(waiting_.size() + admitted_.size()); }
  int group_of(int sequence) const { return sequences_[sequence].group; }
  int sample_of(int sequence) const {
    return sequence - groups_[sequences_[sequence].group].first_sequence;
  }
  std::int64_t preemptions() const { return preemptions_; }
  const std::vector<std::int32_t>& prompt_pages(int group) const { return groups_[group].pages; }
  const std::vector<std::int32_t>& pages_of(int sequence) const {
    return sequences_[sequence].pages;
  }

 private:
  enum class State { kWaiting, kAdmitted, kRunning, kEnding, kDone };
  struct Group {
    GroupShape shape;
    int first_sequence = 0;
    int unfinished = 0, admitted = 0;
    bool held = false;                // the group itself holds references to its prompt's pages
    std::vector<std::int32_t> pages;  // of tokens [0, prompt_tokens - 1)
    std::int64_t computed = 0;
    std::int64_t stored() const { return shape.prompt_tokens - 1; }
  };
  struct Sequence {
    int group = 0;
    State state = State::kWaiting;
    std::int64_t received = 0, launched = 0;  // tokens of the response
    std::int64_t last = 0;                    // GroupShape::last_token()
    int in_flight = 0;
    int slot = -1;
    bool forked = false;        // its copy of the prompt's partial page is in progress
    std::int64_t computed = 0;  // tokens whose keys and values are in its pages
    std::vector<std::int32_t> pages;
  };

  std::int64_t pages_for(std::int64_t tokens) const {
    return (tokens + limits_.page_tokens - 1) / limits_.page_tokens;
  }
  std::int64_t next_position(const Sequence& s) const {
    return groups_[s.group].stored() + s.launched;
  }
  bool idle() const { return slots_.empty() && admitted_.empty(); }

  void retire_full_length();
  bool append_pages();
  void admit();
  bool try_admit(int index);
  void prefill(StepPlan& plan);
  void start(int index);
  bool release_idle_prompt(int except);
  void preempt_youngest();
  void leave_slot(int index);
  void release_pages(Sequence& s);
  void finish(int index);
  bool is_over(const Group& group) const;

  PageLedger& ledger_;
  SchedulerLimits limits_;
  NumberedList<Group> groups_;
  NumberedList<Sequence> sequences_;
  std::set<int> waiting_, admitted_;
  std::vector<int> slots_;  // sequence by slot
  std::vector<SlotChange> changes_;
  std::deque<std::vector<int>> in_flight_;
  int unfinished_ = 0;
  std::int64_t preemptions_ = 0;
};

}  // namespace antisd::inline inference
