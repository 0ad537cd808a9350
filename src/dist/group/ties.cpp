#include "dist/group/ties.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "dist/address.h"
#include "dist/in_time.h"
#include "dist/rendezvous.h"

namespace antisd::inline dist {
namespace {

constexpr double kToRefuse = 5;  // seconds, for ranks that have not come in time to be named

}  // namespace

Ties::Ties(const Place& place, const GroupOptions& options)
    : options_(options),
      address_(options.address.empty() ? address_towards(place.host, place.port, options.wait_s)
                                       : options.address),
      store_(open_store(place, options.wait_s)) {
  std::signal(SIGPIPE, SIG_IGN);  // Gloo writes to connections that a lost rank has closed
  const Attendance own{.rank = place.rank,
                       .size = place.size,
                       .identity = options.identity,
                       .wait_s = options.wait_s,
                       .holds_store = place.rank == 0 && !place.store_is_running};
  const auto met = in_time<bool>(options.wait_s + kToRefuse, [store = store_, own] {
    meet(*store, own);
    return true;
  });
  if (!met)
    throw RunError(
        fmt::format("the ranks' store at {}:{} no longer answers", place.host, place.port),
        {.remedy = "look at the output of rank 0"});
  LivenessOptions watched{.rank = place.rank,
                          .size = place.size,
                          .silence_s = options.silence_s,
                          .on_loss = options.on_loss};
  if (place.store_is_running)
    watched.store_holder = fmt::format("{}'s agent at {}:{}", place.source, place.host, place.port);
  liveness_ = std::make_unique<Liveness>(store_->clone(), watched);
}

// Most messages are short and their answers near: at first this thread only lets others run. Later
// sleeps are short beside what was waited already, and cost a fiftieth of it at most.
void Ties::wait(c10d::Work& work, WaitLog& waits) {
  using Clock = std::chrono::steady_clock;
  using std::chrono::nanoseconds;
  const Clock::time_point begin = Clock::now();
  while (!work.isCompleted()) {
    const nanoseconds waited = Clock::now() - begin;
    if (waited < std::chrono::microseconds(500)) {
      std::this_thread::yield();
      continue;
    }
    try {
      liveness_->check_waiting();
    } catch (const RankLost& loss) {
      lose(loss);
    }
    std::this_thread::sleep_for(std::min<nanoseconds>(waited / 50, std::chrono::milliseconds(10)));
  }
  start([&] {
    if (const std::exception_ptr problem = work.exception()) std::rethrow_exception(problem);
    work.synchronize();
  });
  waits.add(std::chrono::duration<double>(Clock::now() - begin).count());
}

void Ties::leave() {
  try {
    liveness_->leave();
  } catch (const Error&) {
    broken_ = true;
    throw;
  }
}

void Ties::fail(const std::string& message) noexcept {
  broken_ = true;
  liveness_->fail(message);
}

// c10d names an address; Liveness knows the rank, or will when it has been silent long enough.
void Ties::report_broken(const std::string& problem) {
  broken_ = true;
  try {
    liveness_->explain();
  } catch (const RankLost& loss) {
    lose(loss);
  }
  const std::string text = "the connections between the ranks broke: " + problem;
  liveness_->fail(text);
  lose(RankLost(text, {.remedy = "look at the network between the nodes; --resume goes on from "
                                 "the last checkpoint"}));
}

void Ties::lose(const RankLost& loss) {
  broken_ = true;
  if (options_.on_loss) {
    liveness_->make_known();
    options_.on_loss(loss);
  }
  throw loss;
}

Moving::Moving(std::shared_ptr<Ties> ties, std::shared_ptr<WaitLog> waits, WorkPointer work,
               std::function<void()> arrive)
    : ties_(std::move(ties)),
      waits_(std::move(waits)),
      work_(std::move(work)),
      arrive_(std::move(arrive)) {}

Moving::~Moving() {
  try {
    finish();
  } catch (const std::exception&) {  // the loss is reported by the next call
  }
}

void Moving::wait() {
  if (!work_) return;
  finish();
  arrive_();
}

void Moving::finish() {
  const WorkPointer work = std::exchange(work_, {});
  if (work && !ties_->broken()) ties_->wait(*work, *waits_);
}

}  // namespace antisd::inline dist
