#include "report/sweep/child_process.h"

#include <cerrno>
#include <csignal>
#include <fstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "io/system_error.h"

namespace antisd::inline report {
namespace {

constexpr int kCannotRun = 127;

int status_of(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& arguments,
                           const std::filesystem::path& output) {
  const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (out < 0) throw_cannot_write(output, errno);
  std::vector<char*> pointers;
  for (const std::string& argument : arguments)
    pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {  // only calls that are safe after fork() in a program with threads
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(kCannotRun);
    for (const int ignored_here : {SIGPIPE, SIGXFSZ})
      ::signal(ignored_here, SIG_DFL);
    const int in = ::open("/dev/null", O_RDONLY);
    ::dup2(in, 0);
    ::dup2(out, 1);
    ::dup2(out, 2);
    ::execv(pointers[0], pointers.data());
    ::_exit(kCannotRun);
  }
  const int error = errno;
  ::close(out);
  if (pid_ < 0) {
    throw RunError("cannot start a process: " + system_problem(error),
                   {.remedy = "run fewer at a time with --jobs"});
  }
}

ChildProcess::~ChildProcess() {
  if (exit_status()) return;
  stop();
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
}

std::optional<int> ChildProcess::exit_status() {
  if (status_) return status_;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) == pid_) status_ = status_of(status);
  return status_;
}

void ChildProcess::stop() {
  if (!exit_status()) ::kill(pid_, SIGTERM);
}

std::int64_t ChildProcess::peak_bytes() const {
  if (status_) return 0;
  std::ifstream file(fmt::format("/proc/{}/status", pid_));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("VmHWM:")) return std::atoll(line.c_str() + 6) * 1024;
  }
  return 0;
}

}  // namespace antisd::inline report
