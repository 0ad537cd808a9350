#include "reward/code/sandbox.h"

#include <cerrno>
#include <cstring>

#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"

namespace antisd::inline reward {
namespace {

constexpr int kLandlockCreateRuleset = 444;
constexpr unsigned kLandlockVersion = 1;

// Some systems allow a user namespace but then withhold its rights: only trying it shows.
std::string try_namespaces() {
  const pid_t pid = fork();
  if (pid < 0) return "fork";
  if (pid == 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
                CLONE_NEWUTS) != 0)
      _exit(1);
    if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) _exit(2);
    if (mount("tmpfs", "/proc", "tmpfs", 0, nullptr) != 0) _exit(3);
    _exit(0);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  return WIFEXITED(status) && WEXITSTATUS(status) > 1
             ? "mounting inside a user namespace is refused"
             : "making a user namespace is refused";
}

}  // namespace

SandboxStrength probe_sandbox() {
  SandboxStrength strength;
  strength.namespaces_problem = try_namespaces();
  strength.namespaces = strength.namespaces_problem.empty();
  const unsigned action = SECCOMP_RET_ERRNO;
  strength.seccomp = syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
  const long abi = syscall(kLandlockCreateRuleset, nullptr, 0, kLandlockVersion);
  strength.landlock_abi = abi > 0 ? static_cast<int>(abi) : 0;
  return strength;
}

std::vector<std::string> SandboxStrength::lines() const {
  std::vector<std::string> lines;
  lines.push_back(
      namespaces ? "namespaces: user, mount, process, network, ipc"
                 : "namespaces: none, " + namespaces_problem +
                       "; allow unprivileged user namespaces (kernel.unprivileged_userns_clone, "
                       "kernel.apparmor_restrict_unprivileged_userns, or the container's profile)");
  lines.emplace_back(seccomp ? "seccomp: system calls are filtered"
                             : "seccomp: none; the kernel lacks CONFIG_SECCOMP_FILTER");
  lines.push_back(
      landlock_abi > 0
          ? fmt::format("landlock: version {}", landlock_abi)
          : "landlock: none; it needs Linux 5.13 and \"landlock\" in the kernel's lsm= list");
  lines.push_back(!isolates() ? "sandbox: too weak to run graded programs"
                  : namespaces
                      ? "sandbox: full"
                      : "sandbox: reduced, programs can neither write files nor start processes");
  return lines;
}

Confinement choose_confinement(const std::string& sandbox, const SandboxStrength& strength) {
  if (sandbox == "none") return Confinement::kNone;
  if (sandbox != "auto" && sandbox != "reduced")
    throw InputError(
        "unknown sandbox \"" + sandbox + "\"",
        {.where = "reward.sandbox", .remedy = "use \"auto\", \"reduced\" or \"none\""});
  const bool reduced = sandbox == "reduced" || !strength.namespaces;
  if (!strength.seccomp || (reduced && strength.landlock_abi == 0))
    throw InputError(
        "this machine cannot isolate graded programs: " + strength.namespaces_problem +
            (strength.seccomp ? "" : ", no seccomp") +
            (strength.landlock_abi > 0 ? "" : ", no Landlock"),
        {.where = "reward.sandbox",
         .remedy = "allow unprivileged user namespaces (`antisd doctor` says how), or set "
                   "reward.sandbox = \"none\" to run untrusted code without isolation"});
  return reduced ? Confinement::kLandlock : Confinement::kNamespaces;
}

std::string_view to_string(Confinement confinement) {
  switch (confinement) {
    case Confinement::kNamespaces:
      return "namespaces";
    case Confinement::kLandlock:
      return "landlock";
    case Confinement::kNone:
      return "none";
  }
  return "";
}

ConfinedProcess::ConfinedProcess(pid_t pid, UniqueFd control, UniqueFd errors)
    : pid_(pid), control_(std::move(control)), errors_(std::move(errors)) {}

ConfinedProcess::ConfinedProcess(ConfinedProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      control_(std::move(other.control_)),
      errors_(std::move(other.errors_)) {}

ConfinedProcess& ConfinedProcess::operator=(ConfinedProcess&& other) noexcept {
  if (this == &other) return *this;
  kill();
  pid_ = std::exchange(other.pid_, 0);
  control_ = std::move(other.control_);
  errors_ = std::move(other.errors_);
  return *this;
}

void ConfinedProcess::kill() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  control_.reset();
}

std::string ConfinedProcess::errors() const {
  std::string text(2000, '\0');
  const off_t size = lseek(errors_.get(), 0, SEEK_END);
  const ssize_t n = pread(errors_.get(), text.data(), text.size(), std::max<off_t>(0, size - 2000));
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  const std::size_t line = text.rfind('\n');
  return line == std::string::npos ? text : text.substr(line + 1);
}

}  // namespace antisd::inline reward
