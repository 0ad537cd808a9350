#include "cli/weights/chat.h"

#include <cerrno>
#include <csignal>
#include <iostream>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "core/error.h"

namespace antisd::inline cli {
namespace {

std::atomic<bool> pressed = false;  // ^C since it was last looked at
std::atomic<bool> terminated = false;

extern "C" void note_press(int signal) {
  (signal == SIGINT ? pressed : terminated) = true;
  if (signal != SIGINT) pressed = true;  // ends an answer too
}

void catch_presses() {
  struct sigaction action = {};
  action.sa_handler = note_press;  // no SA_RESTART: reading must end
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

// Lines of standard input, without buffering that would hide a signal.
class LineReader {
 public:
  enum class Result { kLine, kEnd, kInterrupted };

  Result next(std::string& line) {
    std::size_t at;
    while ((at = buffer_.find('\n')) == std::string::npos) {
      char bytes[4096];
      const ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
      if (n < 0 && errno == EINTR) return Result::kInterrupted;
      if (n < 0) throw RunError("cannot read", {.where = "standard input"});
      if (n == 0 && buffer_.empty()) return Result::kEnd;
      buffer_.append(n == 0 ? "\n" : std::string(bytes, static_cast<std::size_t>(n)));
    }
    line = buffer_.substr(0, at);
    buffer_.erase(0, at + 1);
    if (line.ends_with('\r')) line.pop_back();
    return Result::kLine;
  }

 private:
  std::string buffer_;
};

class Chat {
 public:
  explicit Chat(const ChatParts& parts) : parts_(parts), on_terminal_(isatty(STDIN_FILENO) == 1) {}

  int run() {
    catch_presses();
    if (on_terminal_) say("/exit or ^D ends, /clear starts anew, ^C stops an answer\n");
    while (true) {
      if (on_terminal_) say("> ");
      std::string line;
      switch (reader_.next(line)) {
        case LineReader::Result::kEnd:
          if (on_terminal_) say("\n");
          return 0;
        case LineReader::Result::kInterrupted:
          if (terminated || !has_asked_to_end()) return kInterruptedStatus;
          continue;
        case LineReader::Result::kLine:
          presses_ = 0;
      }
      if (line == "/exit") return 0;
      if (line == "/clear") {
        messages_ = Json::array();
        continue;
      }
      if (line.empty()) continue;
      answer(line);
      if (terminated) return kInterruptedStatus;
    }
  }

 private:
  static void say(const std::string& text) { std::cerr << text << std::flush; }

  // At the prompt the first ^C says how to end; the second one ends.
  bool has_asked_to_end() {
    pressed = false;
    if (++presses_ > 1) return false;
    say("\n^C once more ends, and so does /exit\n");
    return true;
  }

  void answer(const std::string& line) {
    messages_.push_back({{"role", "user"}, {"content", line}});
    try {
      const std::string text = sample();
      messages_.push_back({{"role", "assistant"}, {"content", text}});
    } catch (const InputError& error) {  // such as a conversation that is too long
      messages_.erase(messages_.size() - 1);
      say(fmt::format("antisd: {}; /clear starts anew\n", error.message()));
    }
  }

  // Streams an answer and returns its text. A stopped one keeps what there was.
  std::string sample() {
    const Tokenizer& tokenizer = parts_.prompts.tokenizer();
    const RolloutRequest request{parts_.prompts.read({{"messages", messages_}}), 1, turn_++};
    RolloutOptions options = parts_.rollout;
    TextStream stream(tokenizer);
    std::vector<std::int32_t> ids;
    const bool live = parts_.stops.empty();  // else it is not known yet what to show
    pressed = false;
    options.interrupted = &pressed;
    options.on_token = [&](std::size_t, int, std::int32_t id) {
      ids.push_back(id);
      if (live) std::cout << stream.add(id) << std::flush;
    };
    parts_.engine.generate(parts_.model, {&request, 1}, options);
    std::string text = readable_text(tokenizer, ids);
    if (const auto at = parts_.stops.find(text)) text.resize(*at);
    std::cout << (live ? stream.finish() : text) << std::endl;
    pressed = false;
    return text;
  }

  const ChatParts& parts_;
  const bool on_terminal_;
  LineReader reader_;
  Json messages_ = Json::array();
  std::uint32_t turn_ = 0;
  int presses_ = 0;  // of ^C since the last line
};

}  // namespace

int run_chat(const ChatParts& parts) {
  return Chat(parts).run();
}

}  // namespace antisd::inline cli
