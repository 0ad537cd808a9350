// For tests only: ranks that are processes. The running test is started again once for each rank,
// and in there `work` runs in place of the test.
//
//   TEST(Some, RanksAgree) {
//     const auto ended = testing::run_processes({.size = 2}, [](const Place& place) {
//       EXPECT_EQ(place.size, 2);
//     });
//     EXPECT_EQ(ended[1].status, 0) << ended[1].output;
//   }
#pragma once

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/testing.h"
#include "dist/place.h"

namespace antisd::testing {

struct ProcessesOptions {
  int size = 2;
  std::vector<int> ranks;  // who is started; empty: all of them, once
  int port = 0;            // 0: a free one
  double limit_s = 60;     // after that those that still run are killed
  // Whether each process loads the program again. Without, as for many ranks, it is a copy of this
  // one, which must have no threads.
  bool load = true;
};

struct RankOutcome {
  int rank = 0;
  int status = -1;      // the exit status; -N: killed by signal N
  std::string output;   // both streams
  double ended_s = -1;  // since the start; when it ended, or was stopped
};

// Holds a port of this machine; nobody answers there.
class HeldPort {
 public:
  HeldPort() : descriptor_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    socklen_t length = sizeof(address);
    if (bind(descriptor_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        listen(descriptor_, 8) != 0 ||
        getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &length) != 0)
      throw RunError("no free port");
    number_ = ntohs(address.sin_port);
  }
  ~HeldPort() { close(descriptor_); }
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;

  int number() const { return number_; }

 private:
  int descriptor_, number_ = 0;
};

// In the process of a rank: runs its work and ends as the program would, with the status of an
// Error, by _exit; 3 if an expectation failed.
[[noreturn]] inline void run_as_rank(const std::function<void(const Place&)>& work) {
  try {
    work(find_place(process_environment()));
  } catch (const Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    _exit(error.exit_status());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "not an Error: %s\n", error.what());
    _exit(4);
  }
  std::exit(::testing::Test::HasFailure() ? 3 : 0);
}

// The processes of one test, each with its output in a file. None outlives this object.
class RankProcesses {
 public:
  RankProcesses(const ProcessesOptions& options, std::function<void(const Place&)> work)
      : options_(options), work_(std::move(work)) {
    if (options_.port == 0) options_.port = HeldPort().number();
    std::vector<int> ranks = options_.ranks;
    for (int r = 0; options_.ranks.empty() && r < options_.size; ++r)
      ranks.push_back(r);
    for (const int rank : ranks)
      start(rank);
  }
  ~RankProcesses() { kill_running(); }
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  // Those that are stopped are killed when only they are left.
  std::vector<RankOutcome> wait() {
    while (look()) {
      if (seconds() > options_.limit_s) {
        ADD_FAILURE() << "some ranks still ran after " << options_.limit_s << " s";
        kill_running();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    kill_running();
    std::vector<RankOutcome> outcomes;
    for (Process& process : processes_) {
      std::stringstream text;
      text << std::ifstream(process.output).rdbuf();
      process.outcome.output = text.str();
      outcomes.push_back(process.outcome);
    }
    return outcomes;
  }

 private:
  struct Process {
    pid_t pid = -1;
    std::filesystem::path output;
    bool stopped = false, ended = false;
    RankOutcome outcome;
  };

  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

  // As torchrun sets them.
  std::vector<std::string> environment_of(int rank) const {
    std::vector<std::string> variables;
    for (char** variable = environ; *variable != nullptr; ++variable)
      if (!std::string_view(*variable).starts_with("TORCHELASTIC_")) variables.push_back(*variable);
    const std::string size = std::to_string(options_.size), own = std::to_string(rank);
    for (const std::string& variable :
         {"ANTISD_TEST_RANK=" + own, "RANK=" + own, "LOCAL_RANK=" + own, "WORLD_SIZE=" + size,
          "LOCAL_WORLD_SIZE=" + size, "MASTER_PORT=" + std::to_string(options_.port),
          std::string("MASTER_ADDR=127.0.0.1"), std::string("OMP_NUM_THREADS=1")})
      variables.push_back(variable);
    return variables;
  }

  void start(int rank) {
    Process process{.outcome = {.rank = rank}};
    process.output = folder_ / std::to_string(processes_.size());
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    std::vector<std::string> arguments = {
        "/proc/self/exe",
        std::string("--gtest_filter=") + test->test_suite_name() + "." + test->name()};
    std::vector<std::string> variables = environment_of(rank);
    std::vector<char*> argument_pointers, variable_pointers;
    for (std::string& argument : arguments)
      argument_pointers.push_back(argument.data());
    for (std::string& variable : variables)
      variable_pointers.push_back(variable.data());
    argument_pointers.push_back(nullptr);
    variable_pointers.push_back(nullptr);
    std::fflush(nullptr);  // a copy would print it again
    const int out = open(process.output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    process.pid = fork();
    if (process.pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(out, 1);
      dup2(out, 2);
      if (!options_.load) {
        environ = variable_pointers.data();
        run_as_rank(work_);
      }
      execve(argument_pointers[0], argument_pointers.data(), variable_pointers.data());
      _exit(127);
    }
    close(out);
    if (process.pid < 0) throw RunError("cannot start a process");
    processes_.push_back(process);
  }

  // Whether some still run.
  bool look() {
    bool runs = false;
    for (Process& process : processes_) {
      int status = 0;
      if (!process.ended && waitpid(process.pid, &status, WNOHANG | WUNTRACED) == process.pid) {
        process.stopped = WIFSTOPPED(status);
        process.ended = !process.stopped;
        if (process.outcome.ended_s < 0) process.outcome.ended_s = seconds();
        if (process.ended) process.outcome.status = status_of(status);
      }
      runs |= !process.ended && !process.stopped;
    }
    return runs;
  }

  void kill_running() {
    for (Process& process : processes_) {
      if (process.ended) continue;
      int status = 0;
      kill(process.pid, SIGKILL);
      waitpid(process.pid, &status, 0);
      process.ended = true;
      process.outcome.status = status_of(status);
    }
  }

  static int status_of(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  ProcessesOptions options_;
  std::function<void(const Place&)> work_;
  TemporaryFolder folder_;
  std::vector<Process> processes_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// One in a test. Outcomes are in the order of `ranks`.
inline std::vector<RankOutcome> run_processes(const ProcessesOptions& options,
                                              const std::function<void(const Place&)>& work) {
  if (std::getenv("ANTISD_TEST_RANK") != nullptr) run_as_rank(work);
  return RankProcesses(options, work).wait();
}

// All ended well and said nothing but what the test prints.
inline void expect_success(const std::vector<RankOutcome>& ended) {
  for (const RankOutcome& rank : ended) {
    EXPECT_EQ(rank.status, 0) << "rank " << rank.rank << ": " << rank.output;
    EXPECT_THAT(rank.output, ::testing::AllOf(::testing::Not(::testing::HasSubstr("TCPStore")),
                                              ::testing::Not(::testing::HasSubstr("[W")),
                                              ::testing::Not(::testing::HasSubstr("[E")),
                                              ::testing::Not(::testing::HasSubstr("frame #"))));
  }
}

// What a rank that ends by an error says: one line.
inline std::string error_line(const RankOutcome& rank) {
  const std::size_t test = rank.output.find("[ RUN ");  // printed by a loaded program
  const std::size_t begin = test == std::string::npos ? 0 : rank.output.find('\n', test) + 1;
  const std::string line = rank.output.substr(std::min(begin, rank.output.size()));
  EXPECT_THAT(line, ::testing::StartsWith("error: ")) << "rank " << rank.rank;
  EXPECT_EQ(std::ranges::count(line, '\n'), 1) << line;
  return line;
}

}  // namespace antisd::testing
