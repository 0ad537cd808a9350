#include "dist/signal_pipe.h"

#include <atomic>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include "io/system_error.h"

namespace antisd::inline dist {
namespace {

std::atomic<int> end_for_signals = -1;
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void write_signal(int number) {
  const int before = errno;
  const auto byte = static_cast<unsigned char>(number);
  [[maybe_unused]] const ssize_t ignored = ::write(end_for_signals, &byte, 1);
  errno = before;
}

}  // namespace

SignalPipe::SignalPipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) throw_failed("cannot make a pipe", errno);
  read_end_.reset(ends[0]);
  write_end_.reset(ends[1]);
  end_for_signals = write_end_.get();
  for (std::size_t i = 0; i < kCaught.size(); ++i) {
    struct sigaction action = {};
    action.sa_handler = kCaught[i] == SIGPIPE ? SIG_IGN : write_signal;
    action.sa_flags = SA_RESTART | SA_NOCLDSTOP;
    sigfillset(&action.sa_mask);
    ::sigaction(kCaught[i], nullptr, &former_[i]);
    const bool stays_ignored = kCaught[i] == SIGHUP && former_[i].sa_handler == SIG_IGN;
    if (!stays_ignored) ::sigaction(kCaught[i], &action, nullptr);
  }
}

SignalPipe::~SignalPipe() {
  restore_former();
  end_for_signals = -1;
}

std::vector<int> SignalPipe::take() {
  std::vector<int> numbers;
  std::array<unsigned char, 256> bytes;
  for (ssize_t count; (count = ::read(read_end_.get(), bytes.data(), bytes.size())) > 0;)
    numbers.insert(numbers.end(), bytes.begin(), bytes.begin() + count);
  return numbers;
}

void SignalPipe::restore_former() const {
  for (std::size_t i = 0; i < kCaught.size(); ++i)
    ::sigaction(kCaught[i], &former_[i], nullptr);
}

}  // namespace antisd::inline dist
