// For tests only: this program as a launcher or as one of its ranks, which follow a script. The
// steps of a rank end with ";", the ranks with "|":
//
//   setenv(kScript, "say hello; exit 0 | kill 9", 1);
//
// Nothing in here waits longer than a minute.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dist/launch.h"
#include "dist/place.h"

namespace antisd::testing {

inline constexpr const char* kScript = "ANTISD_TEST_LAUNCH";  // what each rank does: "a; b | c"
inline constexpr const char* kScriptFolder = "ANTISD_TEST_LAUNCH_FOLDER";
inline constexpr std::chrono::seconds kPatience(45), kLongSleep(60);

inline std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

inline std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);)
    parts.push_back(trimmed(part));
  return parts;
}

inline std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline bool comes_true(const std::function<bool()>& condition) {
  const auto last = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > last) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

inline std::atomic<int> received_in_script = 0;

extern "C" inline void count_signal(int) {
  ++received_in_script;
}

inline std::filesystem::path script_file(const std::string& name) {
  return std::filesystem::path(std::getenv(kScriptFolder)) / name;
}

inline void write_whole(const std::filesystem::path& path, const std::string& text) {
  const std::filesystem::path partly = path.string() + ".part";
  std::ofstream(partly) << text;
  std::filesystem::rename(partly, path);
}

inline void sleep_long() {
  std::this_thread::sleep_for(kLongSleep);
}

inline void leave_orphan(const std::filesystem::path& file) {
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    sleep_long();
    _exit(0);
  }
  write_whole(file, std::to_string(child));
}

inline bool listens_at(int port) {
  const int socket = ::socket(AF_INET6, SOCK_STREAM, 0);
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in6 all = {};
  all.sin6_family = AF_INET6;
  all.sin6_port = htons(static_cast<std::uint16_t>(port));
  return bind(socket, reinterpret_cast<sockaddr*>(&all), sizeof all) == 0 && listen(socket, 8) == 0;
}

inline void describe_rank(const Place& place) {
  std::string arguments = content("/proc/self/cmdline");
  for (char& c : arguments)
    if (c == '\0') c = ',';
  write_whole(script_file(fmt::format("rank-{}", place.rank)),
              fmt::format("{}\n{}\n{}\n{}\n", place.text(), place.meeting, arguments,
                          getsid(0) == getpid() ? "own session" : "session of the launcher"));
}

// Counts the signals until `expected` and a little longer, in case there is one too many.
inline void wait_for_signals(const Place& place, int expected) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1})
    std::signal(number, count_signal);
  write_whole(script_file(fmt::format("ready-{}", place.rank)), std::to_string(getpid()));
  comes_true([&] { return received_in_script >= expected; });
  for (int i = 0; i < 30; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  write_whole(script_file(fmt::format("signals-{}", place.rank)),
              std::to_string(received_in_script));
}

// One step of a rank's script.
inline void act(const std::string& step, const Place& place) {
  const std::string word = step.substr(0, step.find(' '));
  const std::string rest = step.size() > word.size() ? step.substr(word.size() + 1) : "";
  if (word == "exit") _exit(std::stoi(rest));
  if (word == "say") fmt::print(stderr, "{}\n", rest);
  if (word == "mutter") fmt::print(stderr, "{}", rest);
  if (word == "print") fmt::print("{}\n", rest);
  if (word == "echo") {
    std::array<char, 100> bytes;
    const ssize_t count = read(STDIN_FILENO, bytes.data(), bytes.size());
    fmt::print("{}", std::string_view(bytes.data(), static_cast<std::size_t>(count)));
  }
  if (word == "sleep") sleep_long();
  if (word == "ignore") std::signal(SIGTERM, SIG_IGN);
  if (word == "kill") raise(std::stoi(rest));
  if (word == "orphan") leave_orphan(script_file(rest));
  if (word == "describe") describe_rank(place);
  if (word == "signals") wait_for_signals(place, std::stoi(rest));
  if (word == "listen" && !listens_at(place.port)) _exit(50);
  if (word == "note") write_whole(script_file(rest), std::to_string(getpid()));
  if (word == "await" && !comes_true([&] { return std::filesystem::exists(script_file(rest)); }))
    _exit(51);
  std::fflush(nullptr);
}

inline int run_script(const std::string& script) {
  const std::vector<std::string> ranks = split(script, '|');
  const Place place = find_place(process_environment());
  if (place.source != "--processes")
    return launch({.processes = static_cast<int>(ranks.size()), .silence_s = 0.2});
  for (const std::string& step : split(ranks.at(static_cast<std::size_t>(place.rank)), ';'))
    act(step, place);
  return 0;
}

}  // namespace antisd::testing
