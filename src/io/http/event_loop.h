// libevent's loop for one thread, and what may happen in it: a descriptor is ready, a time has
// come, another thread has work.
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

// Calls `then` in the loop's thread. Must not be destroyed by its own call.
class Watch {
 public:
  // EV_READ, EV_WRITE, EV_PERSIST; 0 with descriptor -1 for a time.
  Watch(EventLoop& loop, int descriptor, short events, std::function<void()> then);
  void start();
  void start(double seconds);  // calls after so long at the latest
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

  // Waits for something to happen and lets it; then does what was posted.
  void turn();
  // From any thread: `task` is done in the loop's.
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
