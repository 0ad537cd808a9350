#include "dist/line_relay.h"

#include <array>
#include <cerrno>
#include <utility>

#include <unistd.h>

namespace antisd::inline dist {
namespace {

constexpr std::size_t kLongestLine = 64 << 10;  // bytes; a longer one is cut

}  // namespace

LineRelay::LineRelay(UniqueFd pipe, std::string prefix)
    : pipe_(std::move(pipe)), prefix_(std::move(prefix)) {}

void LineRelay::relay() {
  std::array<char, 4096> bytes;
  while (pipe_) {
    const ssize_t count = ::read(pipe_.get(), bytes.data(), bytes.size());
    if (count < 0) return;  // nothing more for now
    if (count == 0) pipe_.reset();
    pending_.append(bytes.data(), static_cast<std::size_t>(count));
    std::size_t begin = 0;
    for (std::size_t end; (end = pending_.find('\n', begin)) != std::string::npos; begin = end + 1)
      write_line(std::string_view(pending_).substr(begin, end - begin));
    pending_.erase(0, begin);
    if (pending_.size() < kLongestLine) continue;
    write_line(pending_);
    pending_.clear();
  }
}

void LineRelay::finish() {
  relay();
  if (!pending_.empty()) write_line(pending_);
  pending_.clear();
}

void LineRelay::write_line(std::string_view line) const {
  std::string text = prefix_;
  text.append(line).append("\n");
  // One call, so that the lines of rank 0 stay apart.
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t count = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // nobody reads standard error any more
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace antisd::inline dist
