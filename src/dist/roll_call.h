// Who of the ranks is still there, judged from their heartbeats. No threads, no clock: Liveness
// (dist/liveness.h) brings the beats and the time.
//
//   RollCall roll({.rank = 0, .size = 3, .silence_s = 30});
//   roll.hear(beats);               // the store has answered
//   roll.pass(0.5);                 // seconds by this rank's clock
//   if (roll.loss()) ...            // "rank 2 has been silent for 30.2 s; it was in ..."
//
// A rank's silence is the time that we watched without a new beat. It does not count while the
// store gives no answer (then the store is what is silent), nor while this process did not run
// itself: after a machine was suspended as a whole, all its ranks need a moment to beat again.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace antisd::inline dist {

// What a rank says of itself with each heartbeat.
struct Beat {
  enum class State : char {
    kRunning = 'r',  // text: the phase
    kLeft = 'l',     // has ended its run properly and waits for the others to end theirs
    kGone = 'g',     // needs the store no longer
    kFailed = 'f',   // text: why
    kLost = 'n',     // has noticed the loss of a rank; text: its message
  };
  std::int64_t count = 0;
  State state = State::kRunning;
  std::string text = "start";

  std::string encode() const;
  static Beat decode(const std::string& text);
};

struct RollCallOptions {
  int rank = 0, size = 1;
  double silence_s = 30;
  // Who holds the store, where it is not rank 0: "torchrun's agent at n1:29500".
  std::string store_holder;
};

class RollCall {
 public:
  explicit RollCall(const RollCallOptions& options);

  void hear(std::vector<Beat> beats);  // one for each rank
  void pass(double seconds);
  void lose_store();                     // it is gone
  void give_up(const std::string& why);  // from now on loss(), unless there is one

  // Why the run cannot go on: who failed, fell silent or noticed that. Stays what it was at first.
  const std::optional<std::string>& loss() const { return loss_; }
  // Like loss(), for a rank that waits for all others: a rank that left will not come any more.
  std::optional<std::string> absence() const;

  // Whether some other rank that is not silent ...
  bool others_run() const;      // has not ended its run
  bool others_remain() const;   // still needs the store
  bool others_unaware() const;  // has not read of a failure

 private:
  struct Seen {
    Beat beat;
    double silent_s = 0;  // since its last beat
    double ended_s = 0;   // since it said that its run has ended
  };

  bool is_silent(const Seen& rank) const { return rank.silent_s > options_.silence_s; }
  bool others_are(std::initializer_list<Beat::State> states) const;
  std::string phase_of(int rank) const;
  void find_loss();

  RollCallOptions options_;
  std::vector<Seen> seen_;
  double store_silent_s_ = 0;
  std::optional<std::string> loss_;
};

}  // namespace antisd::inline dist
