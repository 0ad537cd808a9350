#include "dist/rank_starter.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dist/place.h"
#include "io/system_error.h"

extern char** environ;

namespace antisd::inline dist {
namespace {

constexpr const char* kOwnProgram = "/proc/self/exe";

// A socket bound to a free port of all addresses; nothing, and errno, where the system refuses.
UniqueFd bind_any(int family) {
  UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return socket;
  const int on = 1, off = 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in6 all6 = {};
  all6.sin6_family = AF_INET6;
  sockaddr_in all4 = {};
  all4.sin_family = AF_INET;
  int failed = 0;
  if (family == AF_INET6) {
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    failed = ::bind(socket.get(), reinterpret_cast<sockaddr*>(&all6), sizeof all6);
  } else {
    failed = ::bind(socket.get(), reinterpret_cast<sockaddr*>(&all4), sizeof all4);
  }
  return failed == 0 ? std::move(socket) : UniqueFd();
}

int port_of(int socket) {
  sockaddr_in6 address = {};  // the port is at the same place in both families
  socklen_t size = sizeof address;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin6_port);
}

std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');)
    arguments.push_back(argument);
  return arguments;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts)
    pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

struct RankPlan {
  pid_t launcher;
  int output;  // -1: the launcher's streams
  const char* program;
  char* const* arguments;
  char* const* environment;
  const SignalPipe& signals;
  const sigset_t& mask;
};

// In the child, with all signals blocked: only calls that are safe after fork().
[[noreturn]] void become_rank(const RankPlan& plan) {
  ::setsid();  // a terminal's signals reach the launcher alone, which passes them on
  // SIGKILL: without a launcher nobody would end a rank that hangs. The launcher may have ended
  // before the call; then nothing is sent any more.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != plan.launcher) ::_exit(1);
  if (plan.output >= 0) {
    const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(plan.output, STDOUT_FILENO);
    ::dup2(plan.output, STDERR_FILENO);
  }
  plan.signals.restore_former();
  ::sigprocmask(SIG_SETMASK, &plan.mask, nullptr);
  ::execve(plan.program, plan.arguments, plan.environment);
  ::execve(kOwnProgram, plan.arguments, plan.environment);  // the file was removed or replaced
  constexpr std::string_view text = "antisd: the program cannot be started again as a rank\n";
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, text.data(), text.size());
  ::_exit(1);
}

}  // namespace

RankStarter::RankStarter(int processes) : processes_(processes), arguments_(own_arguments()) {
  std::random_device random;
  name_ = fmt::format("{:08x}{:08x}", random(), random());
  std::error_code error;
  program_ = std::filesystem::read_symlink(kOwnProgram, error).string();
  socket_ = bind_any(AF_INET6);
  if (!socket_) socket_ = bind_any(AF_INET);
  if (!socket_) throw_failed("there is no port for the ranks to meet at", errno);
  port_ = port_of(socket_.get());
}

std::vector<std::string> RankStarter::environment_of(int rank) const {
  const std::array<std::pair<std::string, std::string>, 7> own = {
      {{"RANK", std::to_string(rank)},
       {"WORLD_SIZE", std::to_string(processes_)},
       {"LOCAL_RANK", std::to_string(rank)},
       {"LOCAL_WORLD_SIZE", std::to_string(processes_)},
       {"MASTER_ADDR", "127.0.0.1"},
       {"MASTER_PORT", std::to_string(port_)},
       {kLaunchVariable, name_}}};
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('='));
    const bool replaced = std::ranges::any_of(own, [&](const auto& o) { return o.first == name; });
    if (!replaced) environment.emplace_back(text);
  }
  for (const auto& [name, value] : own)
    environment.push_back(fmt::format("{}={}", name, value));
  return environment;
}

StartedRank RankStarter::start(int rank, const SignalPipe& signals) const {
  const std::string problem = fmt::format("rank {} of {} cannot be started", rank, processes_);
  UniqueFd output, rank_output;
  if (rank > 0) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw_failed(problem, errno);
    output.reset(ends[0]);
    rank_output.reset(ends[1]);
    ::fcntl(output.get(), F_SETFL, O_NONBLOCK);
  }
  const std::vector<std::string> environment = environment_of(rank);
  const std::vector<char*> arguments = pointers_to(arguments_),
                           variables = pointers_to(environment);
  // Blocked until the child has its own handlers: ours would write into the launcher's pipe.
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const RankPlan plan = {.launcher = ::getpid(),
                         .output = rank_output.get(),
                         .program = program_.c_str(),
                         .arguments = arguments.data(),
                         .environment = variables.data(),
                         .signals = signals,
                         .mask = before};
  const pid_t pid = ::fork();
  if (pid == 0) become_rank(plan);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) throw_failed(problem, error);
  return {pid, std::move(output)};
}

}  // namespace antisd::inline dist
