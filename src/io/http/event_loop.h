// libevent's loop for one thread, and its events: a descriptor is ready, a timer has expired,
// another thread has posted work.
//
//   EventLoop loop;
//   Watch readable(loop, socket, EV_READ | EV_PERSIST, [&] { ... });
//   readable.start();
//   while (!done) loop.turn();
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <event2/event.h>

#include "io/unique_fd.h"

namespace antisd::inline io {

class EventLoop;

// Calls `then` in the loop's thread. Must not be destroyed by that call.
class Watch {
 public:
  // EV_READ, EV_WRITE, EV_PERSIST; 0 with descriptor -1 for a timer.
  Watch(EventLoop& loop, int descriptor, short events, std::function<void()> then);
  void start();
  void start(double seconds);  // calls after this time at the latest
  void stop();

 private:
  struct Free {
    void operator()(event* e) const { event_free(e); }
  };
  std::function<void()> then_;
  std::unique_ptr<event, Free> event_;
};

class EventLoop {
 public:
  EventLoop();

  // Waits for an event and handles it, then runs posted tasks.
  void turn();
  // From any thread: runs `task` in the loop's thread.
  void post(std::function<void()> task);
  // Ends the wait of turn(). From any thread, also in a signal handler.
  void wake() const;

 private:
  friend class Watch;
  struct Free {
    void operator()(event_base* base) const { event_base_free(base); }
  };
  void take_wakes() const;

  std::unique_ptr<event_base, Free> base_;
  UniqueFd wakes_;  // an eventfd
  std::optional<Watch> woken_;
  std::mutex mutex_;
  std::vector<std::function<void()>> posted_;
};

}  // namespace antisd::inline io
