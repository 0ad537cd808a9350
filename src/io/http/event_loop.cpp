#include "io/http/event_loop.h"

#include <cerrno>
#include <cmath>

#include <sys/eventfd.h>

#include "core/error.h"
#include "io/system_error.h"

namespace antisd::inline io {

Watch::Watch(EventLoop& loop, int descriptor, short events, std::function<void()> then)
    : then_(std::move(then)) {
  const auto call = [](evutil_socket_t, short, void* self) { static_cast<Watch*>(self)->then_(); };
  event_.reset(event_new(loop.base_.get(), descriptor, events, call, this));
  if (!event_) throw RunError("an event cannot be made");
}

void Watch::start() {
  event_add(event_.get(), nullptr);
}

void Watch::start(double seconds) {
  const double whole = std::floor(seconds);
  const timeval time = {static_cast<time_t>(whole),
                        static_cast<suseconds_t>((seconds - whole) * 1'000'000)};
  event_add(event_.get(), &time);
}

void Watch::stop() {
  event_del(event_.get());
}

EventLoop::EventLoop() : base_(event_base_new()), wakes_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!base_ || !wakes_) throw_failed("an event loop cannot be made", errno);
  woken_.emplace(*this, wakes_.get(), EV_READ | EV_PERSIST, [this] { take_wakes(); });
  woken_->start();
}

void EventLoop::take_wakes() const {
  eventfd_t count = 0;
  eventfd_read(wakes_.get(), &count);
}

void EventLoop::turn() {
  event_base_loop(base_.get(), EVLOOP_ONCE);
  std::vector<std::function<void()>> tasks;
  {
    const std::lock_guard lock(mutex_);
    tasks.swap(posted_);
  }
  for (const auto& task : tasks)
    task();
}

void EventLoop::post(std::function<void()> task) {
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    is_first = posted_.empty();
    posted_.push_back(std::move(task));
  }
  if (is_first) wake();  // otherwise a turn that will see this task too has been woken already
}

void EventLoop::wake() const {
  const eventfd_t one = 1;
  // Not eventfd_write: a full counter has already woken the loop, and write is safe in a signal
  // handler.
  [[maybe_unused]] const ssize_t done = write(wakes_.get(), &one, sizeof one);
}

}  // namespace antisd::inline io
