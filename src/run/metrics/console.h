// Standard error for a user: log lines above a progress bar at the bottom. Only a terminal gets a
// bar; a file or pipe gets a plain line from time to time.
//
//   Console console({.quiet = options.quiet});
//   ProgressBar bar(console, {.label = "train", .unit = "step", .total = 200});
//   bar.update(12, {{"reward", 0.42}});
//   console.info("step 12 saved");      // above the bar
//   bar.finish();                       // the bar becomes a line; otherwise it disappears
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "run/metrics/progress_text.h"

namespace antisd::inline run {

struct ConsoleOptions {
  bool quiet = false;           // only errors
  int descriptor = 2;           // standard error
  double line_seconds = 30;     // between plain lines
  double frame_seconds = 0.1;   // between frames of a bar
  std::function<double()> now;  // seconds on a steady clock; empty: the system's
};

class ProgressBar;

// All of it is thread-safe.
class Console {
 public:
  explicit Console(ConsoleOptions options = {});
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  void info(std::string_view text);
  void warn(std::string_view text);   // "warning: TEXT"
  void error(std::string_view text);  // "antisd: TEXT", also if quiet

  bool has_bar() const { return is_terminal_ && !options_.quiet; }

 private:
  friend class ProgressBar;
  void print(std::string_view text);
  void draw();   // the newest bar, if any
  void erase();  // removes what draw() left on the screen
  int columns() const;

  ConsoleOptions options_;
  bool is_terminal_ = false;
  std::mutex mutex_;
  std::vector<ProgressBar*> bars_;  // the last one is shown
  bool is_drawn_ = false;
};

struct ProgressOptions {
  std::string label;
  std::string unit = "step";
  std::int64_t total = 0;  // 0: not known
  std::int64_t done = 0;   // before this run, e.g. when resumed; not part of the rate
};

// Bars must end in the reverse order of their creation.
class ProgressBar {
 public:
  ProgressBar(Console& console, ProgressOptions options);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void update(std::int64_t done, std::vector<Metric> values = {});
  void finish();

 private:
  friend class Console;
  void leave();

  Console& console_;
  ProgressState state_;
  std::int64_t first_;
  double begin_, last_shown_;
  bool is_live_ = true;
};

// For a signal handler that ends the program at once: removes the bar from the screen.
void erase_progress_in_signal_handler() noexcept;

}  // namespace antisd::inline run
