// Ranks tell each other that they live: a thread beats in the run's store, reads the beats of the
// others and knows who is silent. Whoever waits for another rank asks check() meanwhile.
//
//   Liveness liveness(store.clone(), {.rank = 1, .size = 4});
//   liveness.enter("sampling of step 12");    // what the others say of this rank if it dies now
//   while (!arrived()) liveness.check();      // RunError: "rank 2 has been silent for 30.2 s; ..."
//   liveness.leave();                         // the run is over; returns when all have said so
//
// The process that holds the store (rank 0) has to outlive the others by a moment, so that they can
// read what happened: leave(), fail() and the destructor wait for that there.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "core/error.h"
#include "dist/roll_call.h"
#include "dist/store.h"

namespace antisd::inline dist {

struct LivenessOptions {
  int rank = 0, size = 1;
  double silence_s = 30;
  // Who holds the store, where it is not rank 0: "torchrun's agent at n1:29500".
  std::string store_holder;
  // Called from a thread when a rank is lost and no call of check() has thrown half a second later,
  // because this rank computes. It is expected to print the error and to end the process by _exit.
  std::function<void(const RunError&)> on_loss;
};

class Liveness {
 public:
  // Puts the first beat of a rank into the store. Each rank does so before any makes a Liveness.
  static void announce(Store& store, int rank);

  // `store` is a connection of its own: a call that gets no answer blocks it.
  Liveness(std::unique_ptr<Store> store, const LivenessOptions& options);
  // Without leave() before it the others take this rank for dead, unless fail() told them why.
  ~Liveness();
  Liveness(const Liveness&) = delete;
  Liveness& operator=(const Liveness&) = delete;

  void enter(const std::string& phase);

  // RunError if a rank is lost. A lock and a comparison.
  void check();
  // Like check(), for a rank that waits for all others: RunError too if one left long ago.
  void check_waiting();
  // Waits for the name of a lost rank after something broke between the ranks: throws it as check()
  // does, at the latest when a silent rank must have been found; returns if nobody is lost.
  void explain();
  // Before this process ends after a loss: waits, up to 2 s, until the others know of it.
  void make_known();

  // Says that this rank's run has ended and waits for the others to say so too. RunError if one is
  // lost meanwhile. Only the destructor may follow.
  void leave();
  // Tells the others why this rank ends: they throw "rank 2 failed: ...". Never throws, takes at
  // most 2 s.
  void fail(const std::string& message) noexcept;

 private:
  struct Shared;
  void stop();

  std::shared_ptr<Shared> shared_;  // the threads' too: one that gets no answer is left behind
  std::thread beat_, watch_;
};

}  // namespace antisd::inline dist
