#include "dist/launch.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "core/testing.h"
#include "dist/launch_testing.h"

namespace antisd::inline dist {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::comes_true;
using testing::content;
using ::testing::HasSubstr;
using testing::kScript;
using testing::kScriptFolder;
using ::testing::Not;
using testing::split;
using ::testing::StartsWith;
using testing::write_whole;

// Before main: where the variable is set, this process is no test.
[[maybe_unused]] const bool is_test_program = [] {
  const char* const script = std::getenv(kScript);
  if (script == nullptr) return true;
  try {
    _exit(testing::run_script(script));
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.message());
    _exit(error.exit_status());
  }
}();

class LaunchTest : public ::testing::Test {
 protected:
  // A launcher in a process group of its own, as a shell starts it.
  pid_t start(const std::string& script, const std::string& folder = ".") {
    fs::create_directories(folder_ / folder);
    const fs::path place = folder_ / folder;
    const std::string out = place / "out", err = place / "err", in = place / "in";
    std::ofstream(in) << "input\n";
    const pid_t pid = fork();
    if (pid != 0) {
      launchers_.push_back(pid);
      return pid;
    }
    setpgid(0, 0);
    std::signal(SIGHUP, on_hangup_);
    setenv(kScript, script.c_str(), 1);
    setenv(kScriptFolder, place.c_str(), 1);
    dup2(open(in.c_str(), O_RDONLY), 0);
    dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
    dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
    const rlim_t files = static_cast<rlim_t>(dup(0)) + further_files_;
    const rlimit limit = {files, files};
    if (further_files_ > 0) setrlimit(RLIMIT_NOFILE, &limit);
    execl("/proc/self/exe", "ranks", "two words", "", nullptr);
    _exit(127);
  }

  // -N: killed by signal N.
  int status_of(pid_t launcher) {
    int status = 0;
    const bool ended = comes_true([&] { return waitpid(launcher, &status, WNOHANG) == launcher; });
    EXPECT_TRUE(ended);
    if (!ended) return 1000;  // TearDown kills it
    std::erase(launchers_, launcher);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  int run(const std::string& script) { return status_of(start(script)); }

  void TearDown() override {
    for (const pid_t launcher : launchers_) {
      kill(launcher, SIGKILL);
      waitpid(launcher, nullptr, 0);
    }
  }

  std::string text(const std::string& name) const { return content(folder_ / name); }

  // What the launcher's standard error has after a prefix.
  std::vector<std::string> lines_of(const std::string& prefix) const {
    std::vector<std::string> lines;
    for (const std::string& line : split(text("err"), '\n'))
      if (line.starts_with(prefix)) lines.push_back(line.substr(prefix.size()));
    return lines;
  }

  bool appears(const std::string& name) const {
    return comes_true([&] { return fs::exists(folder_ / name); });
  }

  pid_t process_in(const std::string& name) const {
    EXPECT_TRUE(appears(name)) << name;
    return std::atoi(text(name).c_str());
  }

  // R, S, T (stopped), Z (ended, its parent has not waited for it), ...; 0: gone.
  static char state_of(pid_t pid) {
    const std::string stat = content(fmt::format("/proc/{}/stat", pid));
    return stat.empty() ? '\0' : stat[stat.rfind(')') + 2];
  }
  static bool is_gone(pid_t pid) {
    if (comes_true([&] { return state_of(pid) == '\0' || state_of(pid) == 'Z'; })) return true;
    kill(pid, SIGKILL);
    return false;
  }

  testing::TemporaryFolder folder_;
  // What a launcher is started with.
  void (*on_hangup_)(int) = SIG_DFL;
  rlim_t further_files_ = 0;  // that it may open; 0: as many as the test

 private:
  std::vector<pid_t> launchers_;
};

TEST_F(LaunchTest, TellsEachRankItsPlace) {
  EXPECT_EQ(run("describe | describe | describe"), 0) << text("err");
  std::string meeting;
  for (int rank = 0; rank < 3; ++rank) {
    const std::vector<std::string> lines = split(text(fmt::format("rank-{}", rank)), '\n');
    ASSERT_EQ(lines.size(), 4) << rank;
    EXPECT_THAT(lines[0], StartsWith(fmt::format("rank {0} of 3 (--processes), {0} of 3 on this "
                                                 "node, meeting at 127.0.0.1:",
                                                 rank)));
    if (rank == 0) meeting = lines[0].substr(lines[0].rfind(' ')) + lines[1];
    EXPECT_EQ(lines[0].substr(lines[0].rfind(' ')) + lines[1], meeting);
    EXPECT_EQ(lines[2], "ranks,two words,,");
    EXPECT_EQ(lines[3], "own session");
  }
}

TEST_F(LaunchTest, OnlyRank0HasTheStreams) {
  EXPECT_EQ(run("echo; print result; say plainly; note first | await first; print other; say one; "
                "say two; mutter no end; note second | await second; echo; say last"),
            0);
  EXPECT_EQ(text("out"), "input\nresult\n");
  EXPECT_EQ(lines_of("rank 1: "), (std::vector<std::string>{"other", "one", "two", "no end"}));
  EXPECT_EQ(lines_of("rank 2: "), std::vector<std::string>{"last"});
  EXPECT_EQ(split(text("err"), '\n').size(), 6);
  EXPECT_THAT(text("err"), StartsWith("plainly\n"));
}

TEST_F(LaunchTest, StatusIsThatOfTheRankThatFailed) {
  EXPECT_EQ(run("exit 0 | exit 0"), 0);
  EXPECT_EQ(run("say wrong; exit 2 | exit 2"), 2);
  EXPECT_EQ(text("err"), "wrong\n");
  EXPECT_EQ(run("exit 0 | exit 3 | exit 0"), 3);
  EXPECT_EQ(run("exit 130 | exit 130"), 130);
  EXPECT_EQ(run("exit 130 | exit 0"), 130);
  EXPECT_EQ(run("exit 130 | exit 1"), 1);
  // Rank 0 only lost rank 1, which ends later.
  EXPECT_EQ(run("note lost; exit 1 | await lost; exit 2"), 2);
  EXPECT_EQ(text("err"), "");
}

TEST_F(LaunchTest, NamesARankThatWasKilled) {
  EXPECT_EQ(run("exit 1 | exit 1 | kill 9"), 1);
  EXPECT_THAT(text("err"), AllOf(StartsWith("antisd: rank 2 was killed by signal 9 (Killed); "),
                                 HasSubstr("memory"), HasSubstr("fewer processes")));
  EXPECT_EQ(run("kill 10 | kill 10"), 1);
  EXPECT_THAT(text("err"), AllOf(HasSubstr("was killed by signal 10 (User defined signal 1)"),
                                 Not(HasSubstr("memory"))));
  EXPECT_EQ(split(text("err"), '\n').size(), 1) << "one message";
  // The launcher ignores this one; its ranks do not.
  EXPECT_EQ(run("kill 13 | exit 0"), 1);
  EXPECT_THAT(text("err"), HasSubstr("rank 0 was killed by signal 13 (Broken pipe)"));
}

TEST_F(LaunchTest, PassesEachSignalOnOnce) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    const std::string folder = std::to_string(number);
    const pid_t launcher = start("signals 1; exit 130 | signals 1; exit 130", folder);
    ASSERT_TRUE(appears(folder + "/ready-0") && appears(folder + "/ready-1"));
    EXPECT_EQ(kill(-launcher, number), 0);  // to the whole group, as a terminal does
    EXPECT_EQ(status_of(launcher), 130);
    EXPECT_EQ(text(folder + "/signals-0"), "1");
    EXPECT_EQ(text(folder + "/signals-1"), "1");
    EXPECT_EQ(text(folder + "/err"), "");
  }
}

TEST_F(LaunchTest, KeepsIgnoringHangupsUnderNohup) {
  on_hangup_ = SIG_IGN;
  const pid_t launcher = start("signals 1; exit 130 | signals 1; exit 130");
  ASSERT_TRUE(appears("ready-0") && appears("ready-1"));
  kill(launcher, SIGHUP);
  kill(launcher, SIGTERM);
  EXPECT_EQ(status_of(launcher), 130);
  EXPECT_EQ(text("signals-0"), "1");
  EXPECT_EQ(text("signals-1"), "1");
}

TEST_F(LaunchTest, ASignalBeforeARankListensStopsIt) {
  const pid_t launcher = start("note ready; sleep | sleep");
  ASSERT_TRUE(appears("ready"));
  kill(launcher, SIGTERM);
  EXPECT_EQ(status_of(launcher), 130);
  EXPECT_EQ(text("err"), "");
}

TEST_F(LaunchTest, ASecondSignalEndsEvenAStoppedRank) {
  const pid_t launcher = start("signals 2; exit 130 | note stopped; kill 19");
  const pid_t stopped = process_in("stopped");
  ASSERT_TRUE(appears("ready-0") && comes_true([&] { return state_of(stopped) == 'T'; }));
  kill(launcher, SIGINT);
  kill(launcher, SIGUSR1);
  EXPECT_EQ(status_of(launcher), 130);
  EXPECT_EQ(text("signals-0"), "2");
  EXPECT_THAT(text("err"), HasSubstr("rank 1 did not end and had to be killed"));
  EXPECT_TRUE(is_gone(stopped));
}

// Rank 0 fails. Of the others one ignores SIGTERM, one is stopped, one ends by itself in time.
TEST_F(LaunchTest, AFailureEndsAllRanksAndWhatTheyLeft) {
  EXPECT_EQ(run("orphan orphan-0; note failed; exit 3 | ignore; note deaf; sleep | note stopped; "
                "orphan orphan-2; kill 19 | await failed; say lost a rank; exit 1"),
            3);
  EXPECT_THAT(text("err"), AllOf(HasSubstr("rank 3: lost a rank\n"),
                                 HasSubstr("ranks 1, 2 did not end and had to be killed")));
  for (const char* name : {"deaf", "stopped", "orphan-0", "orphan-2"})
    EXPECT_TRUE(is_gone(process_in(name))) << name;
}

TEST_F(LaunchTest, ARankThatCannotBeStartedEndsTheOthers) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "ubsan looks at objects through a pipe, for which no descriptor is left here";
#endif
  further_files_ = 9;
  EXPECT_EQ(run("sleep | sleep | sleep | sleep | sleep | sleep | sleep | sleep | sleep | sleep | "
                "sleep | sleep | sleep"),
            1);
  EXPECT_THAT(text("err"), AllOf(HasSubstr("of 13 cannot be started"), HasSubstr("ulimit -n")));
}

TEST_F(LaunchTest, NothingIsLeftAfterSuccess) {
  EXPECT_EQ(run("exit 0 | orphan orphan"), 0);
  EXPECT_TRUE(is_gone(process_in("orphan")));
  EXPECT_EQ(text("err"), "");
}

TEST_F(LaunchTest, RanksEndWithTheLauncher) {
  const pid_t launcher = start("ignore; note a; sleep | note b; kill 19");
  const pid_t a = process_in("a"), b = process_in("b");
  kill(launcher, SIGKILL);
  EXPECT_EQ(status_of(launcher), -SIGKILL);
  EXPECT_TRUE(is_gone(a));
  EXPECT_TRUE(is_gone(b));
}

// Rank 0 can listen at the port; nobody else gets it before.
TEST_F(LaunchTest, TwoLaunchesSideBySide) {
  const std::string script = "describe; await go; listen; note ready; await end | exit 0";
  const pid_t a = start(script, "a"), b = start(script, "b");
  std::vector<int> ports;
  std::vector<std::string> meetings;
  for (const std::string name : {"a", "b"}) {
    ASSERT_TRUE(appears(name + "/rank-0"));
    const std::vector<std::string> lines = split(text(name + "/rank-0"), '\n');
    ports.push_back(std::stoi(lines[0].substr(lines[0].rfind(':') + 1)));
    meetings.push_back(lines[1]);
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in local = {};
    local.sin_family = AF_INET;
    local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    local.sin_port = htons(static_cast<std::uint16_t>(ports.back()));
    EXPECT_NE(bind(socket, reinterpret_cast<sockaddr*>(&local), sizeof local), 0);
    close(socket);
    write_whole(folder_ / name / "go", "");
  }
  EXPECT_NE(ports[0], ports[1]);
  EXPECT_NE(meetings[0], meetings[1]);
  for (const std::string name : {"a", "b"}) {
    EXPECT_TRUE(appears(name + "/ready"));
    write_whole(folder_ / name / "end", "");
  }
  EXPECT_EQ(status_of(a), 0);
  EXPECT_EQ(status_of(b), 0);
}

}  // namespace
}  // namespace antisd::inline dist
