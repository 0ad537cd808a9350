#include "dist/rendezvous.h"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "core/check.h"
#include "core/error.h"
#include "dist/liveness.h"

namespace antisd::inline dist {
namespace {

using MeetingClock = std::chrono::steady_clock;

constexpr std::chrono::duration<double> kToReadRefusal(2);

// What a rank says of itself when it comes.
struct Hello {
  int size = 0;
  std::string process;  // "process 4711 on n1"
  std::string identity;

  std::string encode() const { return fmt::format("{}\n{}\n{}", size, process, identity); }
  static Hello decode(const std::string& text) {
    const std::size_t first = text.find('\n'), second = text.find('\n', first + 1);
    ANTISD_CHECK(second != std::string::npos);
    return {std::stoi(text), text.substr(first + 1, second - first - 1), text.substr(second + 1)};
  }
};

std::string this_process() {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  return fmt::format("process {} on {}", getpid(), host);
}

// The first line in which two texts differ, of each.
std::pair<std::string, std::string> first_difference(const std::string& a, const std::string& b) {
  std::istringstream lines_a(a), lines_b(b);
  std::string line_a, line_b;
  do {
    if (!std::getline(lines_a, line_a)) line_a = "nothing";
    if (!std::getline(lines_b, line_b)) line_b = "nothing";
  } while (line_a == line_b && (lines_a || lines_b));
  return {line_a, line_b};
}

class Arrival {
 public:
  Arrival(Store& store, const Attendance& own)
      : store_(store), own_(own), hellos_(static_cast<std::size_t>(own.size)) {}

  void meet() {
    const Hello hello{own_.size, this_process(), own_.identity};
    store_.add("came", 1);
    if (store_.add(key("claim", own_.rank), 1) > 1) refuse(claimed_twice(hello));
    Liveness::announce(store_, own_.rank);
    store_.set(key("hello", own_.rank), hello.encode());
    wait_for_all();
    for (int r = 1; r < own_.size; ++r)
      compare(r);
    store_.set("begun", "");
  }

 private:
  static std::string key(const char* name, int rank) { return fmt::format("{}/{}", name, rank); }
  const Hello& hello(int rank) const { return *hellos_[static_cast<std::size_t>(rank)]; }

  void wait_for_all() {
    const auto begin = MeetingClock::now();
    std::chrono::duration<double> waited(0);
    while (!all_came()) {
      follow_refusal();
      waited = MeetingClock::now() - begin;
      if (waited.count() > own_.wait_s) refuse(missing());
      std::this_thread::sleep_for(std::clamp<std::chrono::duration<double>>(
          waited / 20, std::chrono::milliseconds(2), std::chrono::milliseconds(200)));
    }
  }

  // A few messages, however many ranks there are: one store answers all of them. While some are
  // missing, it looks at one more of those that have come, which may be of another size.
  bool all_came() {
    std::vector<std::string> keys;
    for (int r = 0; r < own_.size; ++r)
      keys.push_back(key("hello", r));
    if (!store_.has(keys)) {
      if (look_for(seen_)) ++seen_;
      return false;
    }
    const std::vector<std::string> texts = store_.get(keys);
    for (int r = 0; r < own_.size; ++r)
      take_hello(r, texts[static_cast<std::size_t>(r)]);
    return true;
  }

  bool look_for(int rank) {
    const std::optional<std::string> text = store_.find(key("hello", rank));
    if (text) take_hello(rank, *text);
    return text.has_value();
  }

  void take_hello(int rank, const std::string& text) {
    const Hello& hello = hellos_[static_cast<std::size_t>(rank)].emplace(Hello::decode(text));
    if (hello.size != own_.size) refuse(other_size(rank, hello));
  }

  void compare(int rank) {
    if (hello(rank).identity == hello(0).identity) return;
    const auto [first, other] = first_difference(hello(0).identity, hello(rank).identity);
    refuse(InputError(
        fmt::format("rank {} was not started as rank 0 was: it has `{}`, rank 0 has `{}`", rank,
                    other, first),
        {.remedy = "start all ranks with the same program, configuration and options"}));
  }

  InputError other_size(int rank, const Hello& other) const {
    // The same text on both sides.
    int first = own_.rank, first_size = own_.size, second = rank, second_size = other.size;
    if (first > second) {
      std::swap(first, second);
      std::swap(first_size, second_size);
    }
    return InputError(fmt::format("rank {} was started as one of {} ranks, rank {} as one of {}",
                                  first, first_size, second, second_size),
                      {.remedy = "start all ranks with the same number of ranks"});
  }

  InputError claimed_twice(const Hello& hello) {
    std::string other = "another process";
    for (int tries = 0; tries < 50; ++tries) {  // it may be between its claim and its hello
      if (const std::optional<std::string> text = store_.find(key("hello", own_.rank))) {
        const Hello found = Hello::decode(*text);
        other = fmt::format("{} (one of {} ranks)", found.process, found.size);
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return InputError(
        fmt::format("two processes claim rank {}: {}, and then {} (one of {} ranks)", own_.rank,
                    other, hello.process, own_.size),
        {.remedy = "give each process a rank of its own; if torchrun restarted this one, the store "
                   "still holds the ranks before: start it again with another --rdzv-id"});
  }

  RunError missing() {
    std::vector<int> ranks;
    for (int r = seen_; r < own_.size; ++r)
      if (!look_for(r)) ranks.push_back(r);
    const bool one = ranks.size() == 1;
    return RunError(
        fmt::format("rank{} {} of {} {} not come within {:.0f} s", one ? "" : "s",
                    fmt::join(ranks, ", "), own_.size, one ? "has" : "have", own_.wait_s),
        {.remedy = "look at the output of those processes and whether they can reach this host"});
  }

  // The first refusal counts for all, unless they have begun.
  template <typename Refusal>
  [[noreturn]] void refuse(const Refusal& error) {
    const char kind = error.exit_status() == 2 ? 'i' : 'r';
    if (!store_.find("begun") && store_.add("refusals", 1) == 1)
      store_.set("refused", fmt::format("{}{}\n{}", kind, error.problem(), error.context().remedy));
    finish();
    throw error;
  }

  void follow_refusal() {
    const std::optional<std::string> text = store_.find("refused");
    if (!text) return;
    finish();
    const std::size_t end = text->find('\n');
    const std::string problem = text->substr(1, end - 1);
    const ErrorContext context{.remedy = text->substr(end + 1)};
    if (text->front() == 'i') throw InputError(problem, context);
    throw RunError(problem, context);
  }

  // Whoever holds the store ends when those that came have read the refusal.
  void finish() {
    store_.add("ended", 1);
    if (!own_.holds_store) return;
    const auto begin = MeetingClock::now();
    while (MeetingClock::now() - begin < kToReadRefusal) {
      if (store_.add("ended", 0) >= store_.add("came", 0)) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  Store& store_;
  const Attendance& own_;
  std::vector<std::optional<Hello>> hellos_;
  int seen_ = 0;  // ranks from 0 on that have come
};

}  // namespace

void meet(Store& store, const Attendance& own) {
  Arrival(store, own).meet();
}

}  // namespace antisd::inline dist
