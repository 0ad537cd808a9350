#include "inference/scheduler.h"

#include <algorithm>
#include <numeric>

#include "core/check.h"

namespace antisd::inline inference {

std::int64_t GroupShape::last_token(int sample) const {
  if (pause_after == 0) return max_new_tokens;
  const std::int64_t had = begun.empty() ? 0 : begun[static_cast<std::size_t>(sample)];
  return std::min(max_new_tokens, had + pause_after);
}

std::int64_t GroupShape::longest() const {
  std::int64_t most = 0;
  for (int sample = 0; sample < samples; ++sample)
    most = std::max(most, last_token(sample));
  return prompt_tokens + most;
}

Scheduler::Scheduler(PageLedger& pages, SchedulerLimits limits, std::span<const GroupShape> groups)
    : ledger_(pages), limits_(limits) {
  ANTISD_CHECK(limits.slots > 0 && limits.prefill_chunk_tokens > 0);
  for (const GroupShape& shape : groups)
    add(shape);
}

int Scheduler::add(const GroupShape& shape) {
  ANTISD_CHECK(shape.prompt_tokens > 0 && shape.samples > 0 && shape.max_new_tokens > 0);
  ANTISD_CHECK(shape.begun.empty() || std::ssize(shape.begun) == shape.samples);
  ANTISD_CHECK(pages_needed(shape.longest(), limits_.page_tokens) <= ledger_.total());
  while (!groups_.empty() && is_over(groups_[groups_.begin()])) {
    for (int sample = groups_[groups_.begin()].shape.samples; sample-- > 0;)
      sequences_.forget_first();
    groups_.forget_first();
  }
  const int number = groups_.add({.shape = shape});
  Group& group = groups_[number];
  group.first_sequence = sequences_.end();
  group.unfinished = shape.samples;
  for (int sample = 0; sample < shape.samples; ++sample) {
    const std::int64_t had =
        shape.begun.empty() ? 0 : shape.begun[static_cast<std::size_t>(sample)];
    ANTISD_CHECK_LT(had, shape.last_token(sample));
    waiting_.insert(
        waiting_.end(),
        sequences_.add(
            {.group = number, .received = had, .launched = had, .last = shape.last_token(sample)}));
  }
  unfinished_ += shape.samples;
  return number;
}

bool Scheduler::is_over(const Group& group) const {
  if (group.unfinished > 0) return false;
  for (int sample = 0; sample < group.shape.samples; ++sample)
    if (sequences_[group.first_sequence + sample].in_flight > 0) return false;
  return true;
}

void Scheduler::cancel(int number) {
  Group& group = groups_[number];
  for (int sample = 0; sample < group.shape.samples; ++sample) {
    const int index = group.first_sequence + sample;
    const State state = sequences_[index].state;
    if (state == State::kDone) continue;
    if (state == State::kWaiting) waiting_.erase(index);
    if (state == State::kAdmitted) {
      admitted_.erase(index);
      --group.admitted;
    }
    finish(index);
  }
}

// The longest sequences in all slots, each with pages of its own for its last stored token and all
// before it: a prompt's full pages are shared, so that is enough for them too. A group has its
// prompt's partial page besides, and admit() leaves a quarter of a page for each one that runs.
std::int64_t Scheduler::pages_wanted(std::span<const GroupShape> groups,
                                     const SchedulerLimits& limits) {
  std::vector<std::int64_t> needs;
  for (const GroupShape& group : groups) {
    for (int sample = 0; sample < group.samples; ++sample) {
      const std::int64_t stored = group.prompt_tokens + group.last_token(sample) - 1;
      needs.push_back((stored + limits.page_tokens - 1) / limits.page_tokens);
    }
  }
  std::sort(needs.rbegin(), needs.rend());
  needs.resize(std::min<std::size_t>(needs.size(), static_cast<std::size_t>(limits.slots)));
  const std::int64_t busy = std::ssize(needs);
  return std::accumulate(needs.begin(), needs.end(), std::ssize(groups) + (busy + 3) / 4 + 1);
}

StepPlan Scheduler::plan() {
  StepPlan plan;
  retire_full_length();
  if (!append_pages()) {
    plan.drain = true;
    return plan;
  }
  admit();
  prefill(plan);
  plan.slots = std::exchange(changes_, {});
  plan.rows = running();
  ANTISD_CHECK(plan.rows > 0 || !plan.chunks.empty() || !plan.copies.empty() || in_flight() > 0 ||
               done());
  return plan;
}

void Scheduler::launched() {
  for (const int index : slots_) {
    ++sequences_[index].launched;
    ++sequences_[index].in_flight;
  }
  in_flight_.push_back(slots_);
}

std::vector<int> Scheduler::take() {
  ANTISD_CHECK(!in_flight_.empty());
  std::vector<int> rows = std::move(in_flight_.front());
  in_flight_.pop_front();
  for (int& index : rows) {
    Sequence& s = sequences_[index];
    --s.in_flight;
    if (s.state != State::kDone) continue;
    if (s.in_flight == 0) release_pages(s);
    index = -1;
  }
  return rows;
}

bool Scheduler::token(int index, bool stopped) {
  Sequence& s = sequences_[index];
  ANTISD_CHECK(s.state == State::kRunning || s.state == State::kEnding);
  ++s.received;
  if (!stopped && s.received < s.last) return false;
  finish(index);
  return true;
}

void Scheduler::finish(int index) {
  Sequence& s = sequences_[index];
  Group& group = groups_[s.group];
  if (s.state == State::kRunning) leave_slot(index);
  s.state = State::kDone;
  // A step in flight may still write to its pages.
  if (s.in_flight == 0) release_pages(s);
  --unfinished_;
  if (--group.unfinished > 0 || !group.held) return;
  for (const std::int32_t page : group.pages)
    ledger_.drop(page);
  group.held = false;
}

void Scheduler::release_pages(Sequence& s) {
  for (const std::int32_t page : s.pages)
    ledger_.drop(page);
  s.pages.clear();
}

// The last slot moves into the gap.
void Scheduler::leave_slot(int index) {
  Sequence& s = sequences_[index];
  const int last = running() - 1;
  if (s.slot != last) {
    changes_.push_back({.kind = SlotChange::Kind::kMove, .slot = s.slot, .from = last});
    slots_[s.slot] = slots_[last];
    sequences_[slots_[s.slot]].slot = s.slot;
  }
  slots_.pop_back();
  s.slot = -1;
}

// The length is known before the last token: such a sequence is not in any later step.
void Scheduler::retire_full_length() {
  for (int slot = running(); slot-- > 0;) {
    const int index = slots_[slot];
    Sequence& s = sequences_[index];
    if (s.launched < s.last) continue;
    leave_slot(index);
    s.state = State::kEnding;
  }
}

// Adds a page for each running sequence whose next token starts one; false if it must wait for
// steps in flight.
bool Scheduler::append_pages() {
  const auto wants_page = [&](int index) {
    const Sequence& s = sequences_[index];
    return next_position(s) >= static_cast<std::int64_t>(s.pages.size()) * limits_.page_tokens;
  };
  for (;;) {
    const auto wanted = std::count_if(slots_.begin(), slots_.end(), wants_page);
    if (wanted <= ledger_.free()) break;
    if (in_flight() > 0) return false;
    if (!release_idle_prompt(-1)) preempt_youngest();
  }
  for (int slot = 0; slot < running(); ++slot) {
    if (!wants_page(slots_[slot])) continue;
    const std::int32_t page = ledger_.take();
    sequences_[slots_[slot]].pages.push_back(page);
    changes_.push_back({.kind = SlotChange::Kind::kAppendPage, .slot = slot, .page = page});
  }
  return true;
}

// Releases the prompt pages of the highest group that no sequence is being prepared from.
bool Scheduler::release_idle_prompt(int except) {
  for (int g = groups_.end(); g-- > groups_.begin();) {
    Group& group = groups_[g];
    if (!group.held || group.admitted > 0 || g == except) continue;
    for (const std::int32_t page : group.pages)
      ledger_.drop(page);
    group.held = false;
    return true;
  }
  return false;
}

void Scheduler::preempt_youngest() {
  int index = admitted_.empty() ? -1 : *admitted_.rbegin();
  for (const int running : slots_)
    index = std::max(index, running);
  ANTISD_CHECK(index >= 0);
  Sequence& s = sequences_[index];
  ANTISD_CHECK_EQ(s.in_flight, 0);
  if (s.state == State::kRunning) {
    leave_slot(index);
  } else {
    admitted_.erase(index);
    --groups_[s.group].admitted;
  }
  release_pages(s);
  s.state = State::kWaiting;
  waiting_.insert(index);
  ++preemptions_;
}

void Scheduler::admit() {
  while (!waiting_.empty() && running() + static_cast<int>(admitted_.size()) < limits_.slots) {
    const int index = *waiting_.begin();
    if (try_admit(index)) continue;
    if (idle() && release_idle_prompt(sequences_[index].group)) continue;
    return;
  }
}

// Takes all pages up to the first decode input at once, so that preparation never stalls.
bool Scheduler::try_admit(int index) {
  Sequence& s = sequences_[index];
  Group& group = groups_[s.group];
  const std::int64_t shared = group.stored() / limits_.page_tokens;
  const std::int64_t own = next_position(s) / limits_.page_tokens + 1 - shared;
  const std::int64_t prompt = group.held ? 0 : pages_for(group.stored());
  // Leaves running sequences room to grow, so that a new one is not preempted at once.
  const std::int64_t busy = running() + static_cast<std::int64_t>(admitted_.size());
  if (ledger_.free() < prompt + own + (busy + 3) / 4) return false;
  if (!group.held) {
    group.pages.clear();
    for (std::int64_t i = 0; i < prompt; ++i)
      group.pages.push_back(ledger_.take());
    group.computed = 0;
    group.held = true;
  }
  for (std::int64_t i = 0; i < shared; ++i) {
    ledger_.share(group.pages[i]);
    s.pages.push_back(group.pages[i]);
  }
  for (std::int64_t i = 0; i < own; ++i)
    s.pages.push_back(ledger_.take());
  s.computed = group.stored();
  s.forked = false;
  s.state = State::kAdmitted;
  ++group.admitted;
  waiting_.erase(index);
  admitted_.insert(index);
  return true;
}

void Scheduler::prefill(StepPlan& plan) {
  std::int64_t budget = limits_.prefill_chunk_tokens;
  const auto compute = [&](int group, int sequence, std::int64_t& computed, std::int64_t end) {
    const std::int64_t count = std::min(budget, end - computed);
    if (count == 0) return;
    plan.chunks.push_back({group, sequence, computed, computed + count});
    computed += count;
    budget -= count;
  };
  const std::vector<int> candidates(admitted_.begin(), admitted_.end());
  for (const int index : candidates) {
    Sequence& s = sequences_[index];
    Group& group = groups_[s.group];
    compute(s.group, -1, group.computed, group.stored());
    if (group.computed < group.stored()) continue;
    const bool partial = group.stored() % limits_.page_tokens > 0;
    if (!s.forked) {
      s.forked = true;
      if (partial) {
        const std::int64_t last = group.stored() / limits_.page_tokens;
        plan.copies.push_back({group.pages[last], s.pages[last]});
        if (s.computed < next_position(s)) continue;  // copies follow the chunks of this plan
      }
    }
    compute(s.group, index, s.computed, next_position(s));
    if (s.computed == next_position(s)) start(index);
  }
}

void Scheduler::start(int index) {
  Sequence& s = sequences_[index];
  admitted_.erase(index);
  --groups_[s.group].admitted;
  s.state = State::kRunning;
  s.slot = running();
  slots_.push_back(index);
  changes_.push_back({.kind = SlotChange::Kind::kStart, .slot = s.slot, .sequence = index});
}

}  // namespace antisd::inline inference
