#include "dist/liveness.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "core/start_thread.h"
#include "dist/communicator.h"

namespace antisd::inline dist {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr Seconds kInterval(0.5);     // between beats
constexpr Seconds kPause(0.05);       // after a beat, however often the phase changes
constexpr Seconds kToNotice(0.5);     // for check() to throw before on_loss is called
constexpr Seconds kToBeRead(1.5);     // for the others to read what happened
constexpr Seconds kToBeWritten(0.5);  // for one message to the store and its answer

std::string beat_key(int rank) {
  return "beat/" + std::to_string(rank);
}

RankLost loss_error(const std::string& text) {
  return RankLost(text, {.remedy = "its own output may say why; the last checkpoint is whole, and "
                                   "--resume goes on from it"});
}

}  // namespace

struct Liveness::Shared {
  Shared(std::unique_ptr<Store> connection, const LivenessOptions& o)
      : options(o),
        store(std::move(connection)),
        roll({o.rank, o.size, o.silence_s, o.store_holder}) {
    for (int r = 0; r < o.size; ++r)
      keys.push_back(beat_key(r));
  }

  const LivenessOptions options;
  const std::unique_ptr<Store> store;  // the beating thread's
  std::vector<std::string> keys;

  std::mutex mutex;
  std::condition_variable changed;
  // Under the mutex:
  RollCall roll;
  Beat own;
  std::string said;  // the text of the last beat
  bool stop = false;
  bool ending = false;                  // beats without long pauses: the others wait for this rank
  bool calling = false;                 // the beating thread is waiting for the store
  std::uint64_t asked = 0, served = 0;  // beats that should not wait for the next interval
  bool store_gone = false;
  bool noticed = false;  // check() has thrown
  std::optional<Clock::time_point> lost_at;

  using Lock = std::unique_lock<std::mutex>;
  using Beats = std::vector<Beat>;

  bool holds_store() const { return options.rank == 0 && options.store_holder.empty(); }

  // Shorter where a test's silence is short.
  Seconds interval() const {
    return ending ? kPause : std::min(kInterval, Seconds(options.silence_s / 8));
  }

  void say(Beat::State state, const std::string& text) {
    own.state = state;
    own.text = text;
    ++asked;
    changed.notify_all();
  }

  // A rank that needs the store no longer misses nobody: rank 0 may end as soon as the last of them
  // has said so, before the store has answered.
  void note_loss() {
    const bool misses_nobody = own.state == Beat::State::kGone && !holds_store();
    if (!roll.loss() || lost_at || misses_nobody) return;
    lost_at = Clock::now();
    if (own.state != Beat::State::kFailed) say(Beat::State::kLost, *roll.loss());
  }

  void wait_written(Lock& lock) {
    changed.wait_for(lock, kToBeWritten, [&] { return store_gone || asked == served; });
  }

  // Until the store has this rank's last words and, where this process holds it, the others
  // have read them.
  void wait_known(Lock& lock) {
    wait_written(lock);
    if (!holds_store()) return;
    changed.wait_for(lock, kToBeRead, [&] { return !roll.others_unaware(); });
  }

  [[noreturn]] void throw_noticed(const std::string& text) {
    noticed = true;
    throw loss_error(text);
  }

  // Nothing if the store is gone.
  std::optional<Beats> exchange_beats(const std::string& own_text) {
    try {
      store->set(keys[static_cast<std::size_t>(options.rank)], own_text);
      Beats beats;
      for (const std::string& answer : store->get(keys))
        beats.push_back(Beat::decode(answer));
      return beats;
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  void beat() {
    Lock lock(mutex);
    while (!store_gone && !stop) {
      ++own.count;
      const std::uint64_t serves = asked;
      said = own.text;
      const std::string text = own.encode();
      calling = true;
      lock.unlock();
      std::optional<Beats> beats = exchange_beats(text);
      lock.lock();
      calling = false;
      served = serves;
      store_gone = !beats;
      if (beats)
        roll.hear(std::move(*beats));
      else
        roll.lose_store();
      note_loss();
      changed.notify_all();
      const auto urgent = [&] { return stop || asked != served; };
      changed.wait_for(lock, std::min(kPause, interval()), urgent);
      changed.wait_for(lock, interval() - kPause, [&] { return urgent() || own.text != said; });
    }
  }

  void watch() {
    Lock lock(mutex);
    bool told = !options.on_loss;
    for (Clock::time_point last = Clock::now(); !stop;) {
      changed.wait_for(lock, interval() / 2, [&] { return stop; });
      const Clock::time_point now = Clock::now();
      roll.pass(Seconds(now - last).count());
      last = now;
      note_loss();
      if (told || noticed || stop || !lost_at || now - *lost_at < kToNotice) continue;
      told = true;
      wait_known(lock);
      const RunError error = loss_error(*roll.loss());
      lock.unlock();
      options.on_loss(error);
      lock.lock();
    }
  }
};

void Liveness::announce(Store& store, int rank) {
  store.set(beat_key(rank), Beat().encode());
}

Liveness::Liveness(std::unique_ptr<Store> store, const LivenessOptions& options)
    : shared_(std::make_shared<Shared>(std::move(store), options)) {
  beat_ = start_thread([shared = shared_] { shared->beat(); });
  try {
    watch_ = start_thread([shared = shared_] { shared->watch(); });
  } catch (const Error&) {
    stop();
    throw;
  }
}

Liveness::~Liveness() {
  {
    Shared::Lock lock(shared_->mutex);
    if (shared_->lost_at) shared_->wait_known(lock);
  }
  stop();
}

void Liveness::stop() {
  bool answers = true;
  {
    Shared::Lock lock(shared_->mutex);
    shared_->stop = true;
    shared_->changed.notify_all();
    if (!shared_->lost_at)
      shared_->changed.wait_for(lock, kToBeWritten, [&] { return !shared_->calling; });
    answers = !shared_->calling;
  }
  if (watch_.joinable()) watch_.join();
  if (answers)
    beat_.join();
  else
    beat_.detach();
}

void Liveness::enter(const std::string& phase) {
  const Shared::Lock lock(shared_->mutex);
  if (shared_->own.state != Beat::State::kRunning) return;
  shared_->own.text = phase;
  shared_->changed.notify_all();
}

void Liveness::check() {
  const Shared::Lock lock(shared_->mutex);
  if (shared_->roll.loss()) shared_->throw_noticed(*shared_->roll.loss());
}

void Liveness::check_waiting() {
  const Shared::Lock lock(shared_->mutex);
  const std::optional<std::string> absence = shared_->roll.absence();
  if (!absence) return;
  shared_->roll.give_up(*absence);
  shared_->note_loss();
  shared_->throw_noticed(*absence);
}

void Liveness::explain() {
  Shared::Lock lock(shared_->mutex);
  shared_->noticed = true;  // this rank is about to end by itself
  ++shared_->asked;         // it may be in the store already
  shared_->changed.notify_all();
  const Seconds limit(shared_->options.silence_s + 1);
  shared_->changed.wait_for(lock, limit, [&] { return shared_->lost_at.has_value(); });
  if (shared_->roll.loss()) throw loss_error(*shared_->roll.loss());
}

void Liveness::make_known() {
  Shared::Lock lock(shared_->mutex);
  shared_->wait_known(lock);
}

void Liveness::leave() {
  Shared& shared = *shared_;
  Shared::Lock lock(shared.mutex);
  shared.ending = true;
  if (!shared.lost_at) shared.say(Beat::State::kLeft, "");
  shared.changed.wait(lock, [&] { return shared.lost_at || !shared.roll.others_run(); });
  if (shared.lost_at) shared.throw_noticed(*shared.roll.loss());
  shared.say(Beat::State::kGone, "");
  shared.wait_written(lock);
  if (shared.holds_store())
    shared.changed.wait(lock, [&] { return shared.lost_at || !shared.roll.others_remain(); });
}

void Liveness::fail(const std::string& message) noexcept {
  try {
    Shared::Lock lock(shared_->mutex);
    shared_->noticed = shared_->ending = true;
    shared_->say(Beat::State::kFailed, message);
    shared_->wait_known(lock);
  } catch (const std::exception&) {  // no memory for the text: the others learn it from the silence
  }
}

}  // namespace antisd::inline dist
