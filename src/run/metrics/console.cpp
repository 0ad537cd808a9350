#include "run/metrics/console.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace antisd::inline run {
namespace {

constexpr std::string_view kErase = "\r\x1b[K";  // return to the first column and clear the line
constexpr int kUsualColumns = 80;

// The descriptor that shows a bar now, or -1; atomic, since signal handlers cannot use a lock.
std::atomic<int> live_descriptor{-1};

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Errors are ignored: a closed terminal must not stop a run.
void write_all(int descriptor, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Lines may quote model output, which must not control the terminal.
std::string without_controls(std::string_view text) {
  std::string result;
  for (const char byte : text) {
    const auto code = static_cast<unsigned char>(byte);
    if ((code < 0x20 && byte != '\n' && byte != '\t') || code == 0x7f) {
      result += fmt::format("\\x{:02x}", code);
    } else {
      result.push_back(byte);
    }
  }
  return result;
}

bool can_move_cursor(int descriptor) {
  const char* const kind = std::getenv("TERM");
  return ::isatty(descriptor) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
}

}  // namespace

void erase_progress_in_signal_handler() noexcept {
  const int descriptor = live_descriptor.load();
  if (descriptor >= 0) write_all(descriptor, kErase);
}

Console::Console(ConsoleOptions options)
    : options_(std::move(options)), is_terminal_(can_move_cursor(options_.descriptor)) {
  if (!options_.now) options_.now = steady_seconds;
}

Console::~Console() {
  erase();
}

void Console::info(std::string_view text) {
  if (!options_.quiet) print(text);
}

void Console::warn(std::string_view text) {
  if (!options_.quiet) print("warning: " + std::string(text));
}

void Console::error(std::string_view text) {
  print("antisd: " + std::string(text));
}

void Console::print(std::string_view text) {
  const std::lock_guard lock(mutex_);
  erase();
  write_all(options_.descriptor,
            (is_terminal_ ? without_controls(text) : std::string(text)) + "\n");
  draw();
}

void Console::erase() {
  if (!is_drawn_) return;
  write_all(options_.descriptor, kErase);
  is_drawn_ = false;
  live_descriptor = -1;
}

void Console::draw() {
  if (bars_.empty() || !has_bar()) return;
  live_descriptor = options_.descriptor;
  // The last column stays free: some terminals wrap as soon as it is written.
  const std::string text = progress_bar_text(bars_.back()->state_, columns() - 1);
  write_all(options_.descriptor, fmt::format("\r{}\x1b[K", without_controls(text)));
  is_drawn_ = true;
}

int Console::columns() const {
  struct winsize size {};
  if (::ioctl(options_.descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return kUsualColumns;
  }
  return size.ws_col;
}

ProgressBar::ProgressBar(Console& console, ProgressOptions options)
    : console_(console),
      state_{.label = std::move(options.label),
             .unit = std::move(options.unit),
             .done = options.done,
             .total = options.total},
      first_(options.done),
      begin_(console.options_.now()),
      last_shown_(begin_) {
  const std::lock_guard lock(console_.mutex_);
  console_.bars_.push_back(this);
  console_.draw();
}

ProgressBar::~ProgressBar() {
  leave();
}

void ProgressBar::leave() {
  const std::lock_guard lock(console_.mutex_);
  if (!is_live_) return;
  is_live_ = false;
  console_.erase();
  std::erase(console_.bars_, this);
  console_.draw();
}

void ProgressBar::update(std::int64_t done, std::vector<Metric> values) {
  const std::lock_guard lock(console_.mutex_);
  const double now = console_.options_.now();
  state_.done = done;
  state_.values = std::move(values);
  if (done > first_ && now > begin_) {
    state_.per_second = static_cast<double>(done - first_) / (now - begin_);
  }
  const ConsoleOptions& options = console_.options_;
  const bool is_due =
      now - last_shown_ >= (console_.has_bar() ? options.frame_seconds : options.line_seconds);
  const bool is_last = console_.has_bar() && done == state_.total;
  if (options.quiet || !is_live_ || console_.bars_.back() != this || !(is_due || is_last)) return;
  last_shown_ = now;
  if (console_.has_bar()) {
    console_.draw();
  } else {
    write_all(options.descriptor, progress_line_text(state_) + "\n");
  }
}

void ProgressBar::finish() {
  if (!is_live_) return;
  leave();
  console_.info(fmt::format("{}  in {}", progress_line_text(state_),
                            duration_text(console_.options_.now() - begin_)));
}

}  // namespace antisd::inline run
