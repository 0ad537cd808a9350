#include "run/stop_signals.h"

#include <array>
#include <atomic>
#include <csignal>
#include <string_view>

#include <unistd.h>

#include "run/metrics/console.h"

namespace antisd::inline run {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};

std::atomic<int> received_signals = 0;
static_assert(std::atomic<int>::is_always_lock_free);
std::array<struct sigaction, kSignals.size()> former;

void say(std::string_view text) {
  [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, text.data(), text.size());
}

extern "C" void note_stop(int) {
  if (received_signals++ == 0) {
    say("\n"
        "antisd: stopping after this step; a second signal exits at once\n");
    return;
  }
  erase_progress_in_signal_handler();
  say("antisd: exited without saving; the last checkpoint is complete\n");
  _exit(kStoppedStatus);
}

}  // namespace

StopSignals::StopSignals() {
  received_signals = 0;
  struct sigaction action = {};
  action.sa_handler = note_stop;
  action.sa_flags = SA_RESTART;  // reads and writes of graders and files continue
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &action, &former[i]);
    const bool stays_ignored = kSignals[i] == SIGHUP && former[i].sa_handler == SIG_IGN;
    if (stays_ignored) sigaction(SIGHUP, &former[i], nullptr);
  }
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i)
    sigaction(kSignals[i], &former[i], nullptr);
}

bool StopSignals::received() {
  return received_signals > 0;
}

}  // namespace antisd::inline run
