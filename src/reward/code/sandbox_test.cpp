// Attacks on the machine (testdata/reward/attack), each limited so that it would be harmless even
// if the sandbox failed.
#include <atomic>
#include <fstream>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "io/atomic_file.h"
#include "reward/code/grader.h"
#include "reward/testing.h"

namespace antisd::inline reward {
namespace {

using ::testing::HasSubstr;

CodeGrader& sandbox_grader() {
  static CodeGrader grader(
      {.timeout_s = 20, .memory_mb = 512, .output_bytes = 1 << 20, .workers = 1});
  return grader;
}

CodeGrader& forking_grader() {
  static CodeGrader grader({.timeout_s = 20, .memory_mb = 512, .processes = 16, .workers = 1});
  return grader;
}

CodeGrader& reduced_grader() {
  static CodeGrader grader(
      {.timeout_s = 20, .memory_mb = 512, .processes = 16, .sandbox = "reduced", .workers = 1});
  return grader;
}

CodeGrade run(CodeGrader& grader, const std::string& program, const std::string& output = "held") {
  return grader.grade_program(
      program, {{"kind", "stdio"}, {"cases", {{{"input", ""}, {"output", output}}}}});
}

std::string attempt_of(const std::string& program) {
  return program +
         "\ntry:\n    result = attempt()\nexcept (OSError, MemoryError):\n    "
         "print('held')\nelse:\n    print('ESCAPED', result)\n";
}

class Attack : public ::testing::TestWithParam<std::string> {};

TEST_P(Attack, IsHeld) {
  const std::string program =
      attempt_of(read_file(testing::fixture("reward/attack/" + GetParam() + ".py")));
  for (CodeGrader* one : {&sandbox_grader(), &forking_grader()}) {
    const CodeGrade grade = run(*one, program);
    EXPECT_EQ(grade.correct, true) << grade.reason;
    EXPECT_EQ(run(*one, "print('held')").correct, true) << "the next program is harmed";
  }
}

class AttackWithoutNamespaces : public Attack {};

TEST_P(AttackWithoutNamespaces, IsHeld) {
  if (probe_sandbox().landlock_abi < 1) GTEST_SKIP() << "needs Landlock";
  const CodeGrade grade =
      run(reduced_grader(),
          attempt_of(read_file(testing::fixture("reward/attack/" + GetParam() + ".py"))));
  EXPECT_EQ(grade.correct, true) << grade.reason;
}

// Without namespaces seccomp limits the number of processes, not an rlimit that could be raised.
std::vector<std::string> names_without_limits() {
  std::vector<std::string> names = testing::fixture_names("reward/attack");
  std::erase(names, "raise_limits");
  return names;
}

INSTANTIATE_TEST_SUITE_P(Programs, Attack,
                         ::testing::ValuesIn(testing::fixture_names("reward/attack")),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Programs, AttackWithoutNamespaces,
                         ::testing::ValuesIn(names_without_limits()),
                         [](const auto& info) { return info.param; });

TEST(Sandbox, EndlessLoopMeetsTheClock) {
  CodeGrader quick({.timeout_s = 1, .cpu_s = 5, .workers = 1});
  EXPECT_EQ(run(quick, "while True: pass").reason, "time limit exceeded");
  EXPECT_EQ(run(quick, "import time; time.sleep(60)").reason, "time limit exceeded");
  const CodeGrade grade = quick.grade_program(
      "def f(x):\n  while x == 2: pass\n  return x",
      {{"kind", "asserts"}, {"code", "assert f(1) == 1\nassert f(2) == 2\nassert f(3) == 3"}});
  EXPECT_EQ(grade.correct, false);
  EXPECT_EQ(grade.passed, 1);
  EXPECT_EQ(grade.total, 3) << "tests behind the one that hangs count too";
  EXPECT_EQ(grade.reason, "time limit exceeded");
}

TEST(Sandbox, ProcessorTimeIsLimitedInEveryThread) {
  CodeGrader quick({.timeout_s = 60, .cpu_s = 1, .workers = 1});
  EXPECT_EQ(run(quick, "while True: pass").reason, "time limit exceeded");
  EXPECT_EQ(
      run(quick, "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass")
          .reason,
      "time limit exceeded");
}

TEST(Sandbox, EndlessOutputIsCut) {
  const CodeGrade out =
      run(sandbox_grader(), "import sys\nfor _ in range(200): sys.stdout.write('x' * (1 << 20))");
  EXPECT_EQ(out.reason, "output limit exceeded");
  const CodeGrade error =
      run(sandbox_grader(), "import sys\nfor _ in range(200): sys.stderr.write('x' * (1 << 20))");
  EXPECT_EQ(error.reason, "output limit exceeded");
}

TEST(Sandbox, NoNetwork) {
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  ASSERT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string program = fmt::format(
      "import socket\ndef attempt(): return socket.create_connection(('127.0.0.1', {}), 2)",
      ntohs(address.sin_port));
  EXPECT_EQ(run(sandbox_grader(), attempt_of(program)).correct, true);
  pollfd wait = {listener.get(), POLLIN, 0};
  EXPECT_EQ(poll(&wait, 1, 0), 0) << "a connection arrived";
}

std::atomic<int> urgent_signals = 0;

// SIGURG is ignored by default.
TEST(Sandbox, SignalsToTheGroupAndTheParentStayInside) {
  struct sigaction action = {}, before = {};
  action.sa_handler = [](int) { ++urgent_signals; };
  ASSERT_EQ(sigaction(SIGURG, &action, &before), 0);
  const std::string program = fmt::format(
      "import os, signal\nfor pid in (0, 1, os.getppid(), {}):\n  try: os.kill(pid, "
      "signal.SIGURG)\n  except OSError: pass\n"
      "try: os.killpg({}, signal.SIGURG)\nexcept OSError: pass\nprint('held')",
      getpid(), getpgrp());
  EXPECT_EQ(run(forking_grader(), program).correct, true);
  if (probe_sandbox().landlock_abi > 0) {
    EXPECT_EQ(run(reduced_grader(), program).correct, true);
  }
  sigaction(SIGURG, &before, nullptr);
  EXPECT_EQ(urgent_signals, 0);
}

int count_processes_named(const std::string& name) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "comm");
    std::string line;
    if (std::getline(file, line)) count += line == name;
  }
  return count;
}

TEST(Sandbox, NothingOutlivesTheVerdict) {
  const std::string name = fmt::format("orphan{}", getpid());
  const std::string program = fmt::format(R"(
import ctypes, os, time
def rename():
    ctypes.CDLL(None).prctl(15, b"{}", 0, 0, 0)
if os.fork() == 0:
    os.setsid()
    rename()
    if os.fork() == 0:
        rename()
        os.closerange(0, 64)
        time.sleep(20)
    time.sleep(20)
    os._exit(0)
time.sleep(0.1)
def f(x): return x
print("held")
)",
                                          name);
  EXPECT_EQ(run(forking_grader(), program).correct, true);
  EXPECT_EQ(count_processes_named(name), 0);
  EXPECT_EQ(forking_grader()
                .grade_program(program, {{"kind", "asserts"}, {"code", "assert f(1) == 1"}})
                .correct,
            true);
  EXPECT_EQ(count_processes_named(name), 0);
}

TEST(Sandbox, FilesOfOneProgramAreGoneForTheNext) {
  EXPECT_EQ(run(sandbox_grader(),
                "open('/tmp/mine', 'w').write('x')\nopen('here', 'w').write('y')\nprint('held')")
                .correct,
            true);
  EXPECT_EQ(run(sandbox_grader(),
                "import os\nprint('held' if not os.listdir('/tmp') else os.listdir('/tmp'))")
                .correct,
            true);
  EXPECT_FALSE(std::filesystem::exists("/tmp/mine"));
}

TEST(Sandbox, OrdinaryThingsWork) {
  const char* program = R"(
import asyncio, collections, datetime, json, math, random, re, subprocess, sys, tempfile, threading, time
import numpy as np
async def two(): 
    await asyncio.sleep(0)
    return 2
assert asyncio.run(two()) == 2
with tempfile.NamedTemporaryFile() as file: file.write(b"x")
results = []
threads = [threading.Thread(target=results.append, args=(i,)) for i in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
assert sorted(results) == [0, 1, 2, 3]
assert np.linalg.norm(np.ones((64, 64)) @ np.ones((64, 64))) > 0
sys.setrecursionlimit(100000)
threading.stack_size(256 << 20)
def deep(n): return 0 if n == 0 else 1 + deep(n - 1)
thread = threading.Thread(target=lambda: print(deep(20000)))
thread.start(); thread.join()
)";
  EXPECT_EQ(run(sandbox_grader(), program, "20000").correct, true)
      << run(sandbox_grader(), program, "20000").reason;
}

// The full sandbox, and the reduced one if available.
std::vector<CodeGrader*> confined_graders() {
  std::vector<CodeGrader*> graders = {&sandbox_grader()};
  if (probe_sandbox().landlock_abi > 0) graders.push_back(&reduced_grader());
  return graders;
}

std::vector<std::int64_t> times_of(const std::string& path) {
  struct stat file;
  if (stat(path.c_str(), &file) != 0) throw std::runtime_error("cannot look at " + path);
  return {file.st_mtim.tv_sec, file.st_mtim.tv_nsec, file.st_ctim.tv_sec, file.st_ctim.tv_nsec};
}

// By path and through the program's standard input and output.
TEST(Sandbox, TimesOfTheHostsDevicesStay) {
  const char* devices[] = {"/dev/null", "/dev/zero", "/dev/urandom"};
  const char* program =
      "import os\nfor target in ('/dev/null', '/dev/zero', '/dev/urandom', 0, 1, 2):\n"
      "  try: os.utime(target)\n  except OSError: pass\n"
      "  try: os.utime(target, (1, 1))\n  except OSError: pass\n"
      "def f(x): return x\n";
  for (CodeGrader* one : confined_graders()) {
    std::vector<std::vector<std::int64_t>> before;
    for (const char* device : devices)
      before.push_back(times_of(device));
    EXPECT_EQ(
        one->grade_program(program, {{"kind", "asserts"}, {"code", "assert f(1) == 1"}}).correct,
        true);
    for (std::size_t i = 0; i < std::size(devices); ++i)
      EXPECT_EQ(times_of(devices[i]), before[i]) << devices[i];
  }
}

TEST(Sandbox, DevicesCanBeUsed) {
  for (CodeGrader* one : confined_graders())
    EXPECT_EQ(run(*one,
                  "open('/dev/null', 'w').write('x')\n"
                  "assert open('/dev/zero', 'rb').read(4) == bytes(4)\n"
                  "assert len(open('/dev/urandom', 'rb').read(8)) == 8\nprint('held')")
                  .reason,
              "");
}

// Landlock does not cover modes and times, and its first versions not lengths: without a mount
// namespace, any file of the user's would be reachable by its path.
TEST(Sandbox, FilesOfTheUserKeepModeTimesAndLength) {
  testing::TemporaryFolder folder;
  const std::string path = (folder / "mine").string();
  std::ofstream(path) << "text";
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  const std::vector<std::int64_t> before = times_of(path);
  const std::string program = fmt::format(
      "import os\npath = '{}'\n"
      "for change in (lambda: os.chmod(path, 0o777), lambda: os.utime(path), lambda: "
      "os.truncate(path, 0), lambda: os.open(path, os.O_RDONLY | os.O_TRUNC)):\n"
      "  try: change()\n  except OSError: pass\nprint('held')",
      path);
  for (CodeGrader* one : confined_graders()) {
    EXPECT_EQ(run(*one, program).correct, true);
    EXPECT_EQ(times_of(path), before);
    EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0640));
    EXPECT_EQ(read_file(path), "text");
  }
}

// In reduced mode only root can hide the host name.
TEST(Sandbox, HostNameIsHidden) {
  const char* program = "import os, socket\nprint(socket.gethostname(), os.uname().nodename)";
  EXPECT_EQ(run(sandbox_grader(), program, "sandbox sandbox").reason, "");
  if (geteuid() == 0 && probe_sandbox().landlock_abi > 0 && probe_sandbox().namespaces) {
    EXPECT_EQ(run(reduced_grader(), program, "sandbox sandbox").reason, "");
  }
}

TEST(Sandbox, StrengthSaysWhatIsMissing) {
  const SandboxStrength strength = probe_sandbox();
  EXPECT_EQ(strength.lines().size(), 4u);
  SandboxStrength weak;
  weak.namespaces_problem = "making a user namespace is refused";
  const std::string error = testing::error_of([&] { choose_confinement("auto", weak); });
  EXPECT_THAT(error, HasSubstr("reward.sandbox = \"none\""));
  EXPECT_EQ(choose_confinement("none", weak), Confinement::kNone);
  weak.seccomp = true;
  weak.landlock_abi = 3;
  EXPECT_EQ(choose_confinement("auto", weak), Confinement::kLandlock);
  EXPECT_THAT(testing::error_of([&] { choose_confinement("some", weak); }),
              HasSubstr("unknown sandbox"));
}

TEST(Sandbox, NoneRunsWithoutIsolationOnPurpose) {
  CodeGrader open({.timeout_s = 20, .sandbox = "none", .workers = 1});
  EXPECT_EQ(open.confinement(), Confinement::kNone);
  EXPECT_EQ(run(open, "print('held')").correct, true);
  EXPECT_EQ(
      open.grade_program("def f(x): return x", {{"kind", "asserts"}, {"code", "assert f(1) == 1"}})
          .correct,
      true);
}

}  // namespace
}  // namespace antisd::inline reward
