#include "dist/roll_call.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/check.h"

namespace antisd::inline dist {

std::string Beat::encode() const {
  return fmt::format("{} {}{}", count, static_cast<char>(state), text);
}

Beat Beat::decode(const std::string& text) {
  const std::size_t space = text.find(' ');
  ANTISD_CHECK(space != std::string::npos && space + 1 < text.size());
  return {std::stoll(text), static_cast<State>(text[space + 1]), text.substr(space + 2)};
}

RollCall::RollCall(const RollCallOptions& options)
    : options_(options), seen_(static_cast<std::size_t>(options.size)) {}

void RollCall::hear(std::vector<Beat> beats) {
  ANTISD_CHECK_EQ(beats.size(), seen_.size());
  store_silent_s_ = 0;
  for (std::size_t r = 0; r < seen_.size(); ++r) {
    Seen& seen = seen_[r];
    if (beats[r].count != seen.beat.count) seen.silent_s = 0;
    seen.beat = std::move(beats[r]);
  }
  find_loss();
}

void RollCall::pass(double seconds) {
  // A longer gap means that this process did not run; nobody else may have either.
  const double watched = std::min(seconds, options_.silence_s / 2);
  store_silent_s_ += watched;
  if (store_silent_s_ <= options_.silence_s / 2) {
    for (Seen& seen : seen_) {
      seen.silent_s += watched;
      if (seen.beat.state != Beat::State::kRunning) seen.ended_s += watched;
    }
  }
  find_loss();
}

// Rank 0 ends last and waits until the others have read why (Liveness): where its store is gone
// before that, it died.
void RollCall::lose_store() {
  if (loss_) return;
  loss_ = options_.store_holder.empty()
              ? fmt::format("rank 0 has died{}", phase_of(0))
              : "the ranks' store is gone, which was held by " + options_.store_holder;
}

void RollCall::give_up(const std::string& why) {
  if (!loss_) loss_ = why;
}

std::optional<std::string> RollCall::absence() const {
  if (loss_) return loss_;
  for (int r = 0; r < options_.size; ++r) {
    const Seen& seen = seen_[static_cast<std::size_t>(r)];
    if (r != options_.rank && seen.ended_s > options_.silence_s)
      return fmt::format("rank {} has ended its run, but rank {} waits for it", r, options_.rank);
  }
  return std::nullopt;
}

bool RollCall::others_run() const {
  return others_are({Beat::State::kRunning});
}

bool RollCall::others_remain() const {
  using enum Beat::State;
  return others_are({kRunning, kLeft, kFailed, kLost});
}

bool RollCall::others_unaware() const {
  return others_are({Beat::State::kRunning, Beat::State::kLeft});
}

bool RollCall::others_are(std::initializer_list<Beat::State> states) const {
  for (int r = 0; r < options_.size; ++r) {
    const Seen& seen = seen_[static_cast<std::size_t>(r)];
    if (r != options_.rank && !is_silent(seen) && std::ranges::count(states, seen.beat.state) > 0)
      return true;
  }
  return false;
}

std::string RollCall::phase_of(int rank) const {
  const Beat& beat = seen_[static_cast<std::size_t>(rank)].beat;
  return beat.state == Beat::State::kRunning ? "; it was in " + beat.text : "";
}

void RollCall::find_loss() {
  if (loss_) return;
  for (int r = 0; r < options_.size; ++r) {
    const Beat& beat = seen_[static_cast<std::size_t>(r)].beat;
    if (r == options_.rank) continue;
    if (beat.state == Beat::State::kFailed) loss_ = fmt::format("rank {} failed: {}", r, beat.text);
    if (beat.state == Beat::State::kLost) loss_ = beat.text;
    if (loss_) return;
  }
  if (store_silent_s_ > options_.silence_s) {
    loss_ = options_.store_holder.empty()
                ? fmt::format("rank 0 has been silent for {:.1f} s{}", store_silent_s_, phase_of(0))
                : fmt::format("the ranks' store has been silent for {:.1f} s, which is held by {}",
                              store_silent_s_, options_.store_holder);
    return;
  }
  for (int r = 0; r < options_.size; ++r) {
    const Seen& seen = seen_[static_cast<std::size_t>(r)];
    if (r == options_.rank || seen.beat.state != Beat::State::kRunning || !is_silent(seen))
      continue;
    loss_ = fmt::format("rank {} has been silent for {:.1f} s{}", r, seen.silent_s, phase_of(r));
    return;
  }
}

}  // namespace antisd::inline dist
