// Starts a confined interpreter. Between clone and exec the child may hold locks of threads that do
// not exist in it, so it only makes system calls, and everything it needs (paths, texts) is
// prepared before.
#include <cerrno>
#include <cstring>
#include <set>

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "core/error.h"
#include "io/process/pipes.h"
#include "io/system_error.h"
#include "reward/code/sandbox.h"

namespace antisd::inline reward {
namespace {

namespace fs = std::filesystem;

// The new root is built on top of /proc of the child's own mount namespace: it always exists, and
// no file of the interpreter is below it.
constexpr const char* kStage = "/proc";
constexpr int kNamespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                            CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
constexpr unsigned kNobody = 65534;

struct Bind {
  std::string source, target;
  bool folder = true, device = false;
};

struct Plan {
  std::vector<std::string> folders;                        // to create, outer before inner
  std::vector<std::pair<std::string, std::string>> links;  // target text, path
  std::vector<Bind> binds;
  std::vector<char*> arguments, environment;
  std::string executable;
  bool confined = false, namespaces = false, drop_groups = false;
  int control = -1, errors = -1, null = -1, go = -1, failure = -1;
};

Plan plan_root(const Interpreter& interpreter) {
  Plan plan;
  std::set<std::string> folders;
  const auto need = [&](const fs::path& path) {
    fs::path built;
    for (const fs::path& part : path.relative_path())
      folders.insert(kStage / (built /= part));
  };
  for (const fs::path& path : interpreter.readable) {
    const bool folder = fs::is_directory(path);
    need(folder ? path : path.parent_path());
    plan.binds.push_back({path.string(), kStage + path.string(), folder});
  }
  need("/tmp");
  need("/dev");
  for (const char* device : {"/dev/null", "/dev/zero", "/dev/urandom"})
    if (fs::exists(device))
      plan.binds.push_back({device, std::string(kStage) + device, false, true});
  for (const char* link : {"/lib", "/lib64"})
    if (fs::is_symlink(link))
      plan.links.emplace_back(fs::read_symlink(link).string(), std::string(kStage) + link);
  plan.folders.assign(folders.begin(), folders.end());
  return plan;
}

[[noreturn]] void fail_in_child(const Plan& plan, const char* step) {
  const int error = errno;
  [[maybe_unused]] ssize_t ignored = write(plan.failure, &error, sizeof error);
  ignored = write(plan.failure, step, strlen(step));
  _exit(1);
}

void make_read_only(const Plan& plan, const Bind& bind) {
  struct {
    std::uint64_t set, clear, propagation, userns_fd;
  } attributes = {1 /*RDONLY*/ | 2 /*NOSUID*/ | (bind.device ? 0u : 4u /*NODEV*/), 0, 0, 0};
  constexpr int kMountSetattr = 442, kRecursive = 0x8000;
  if (syscall(kMountSetattr, -1, bind.target.c_str(), kRecursive, &attributes, sizeof attributes) ==
      0)
    return;
  struct statvfs now;  // older kernel: repeat the flags that the user namespace locked
  if (statvfs(bind.target.c_str(), &now) != 0) fail_in_child(plan, "looking at a mount");
  unsigned long flags = MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | (bind.device ? 0 : MS_NODEV);
  if (now.f_flag & ST_NOEXEC) flags |= MS_NOEXEC;
  if (now.f_flag & ST_NODEV) flags |= MS_NODEV;
  if (now.f_flag & ST_NOATIME) flags |= MS_NOATIME;
  if (now.f_flag & ST_RELATIME) flags |= MS_RELATIME;
  if (mount(nullptr, bind.target.c_str(), nullptr, flags, nullptr) != 0)
    fail_in_child(plan, "making a mount read-only");
}

void enter_new_root(const Plan& plan) {
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    fail_in_child(plan, "making mounts private");
  if (mount("tmpfs", kStage, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=755") != 0)
    fail_in_child(plan, "mounting a root folder");
  for (const std::string& folder : plan.folders)
    if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) fail_in_child(plan, "making a folder");
  for (const auto& [text, path] : plan.links)
    if (symlink(text.c_str(), path.c_str()) != 0 && errno != EEXIST)
      fail_in_child(plan, "making a link");
  for (const Bind& bind : plan.binds) {
    if (!bind.folder) {
      const int file = open(bind.target.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
      if (file < 0) fail_in_child(plan, "making a file");
      close(file);
    }
    if (mount(bind.source.c_str(), bind.target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
      fail_in_child(plan, "binding the interpreter's files");
    // A device too: it can be written, but its times and mode on the host cannot change.
    make_read_only(plan, bind);
  }
  if (chdir(kStage) != 0 || syscall(SYS_pivot_root, ".", ".") != 0 ||
      umount2(".", MNT_DETACH) != 0 || chdir("/") != 0)
    fail_in_child(plan, "changing the root folder");
  if (mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV,
            nullptr) != 0)
    fail_in_child(plan, "making the root folder read-only");
}

// Without the other namespaces only root can use this one; for an ordinary user the name stays
// visible.
void hide_host_name(const Plan& plan) {
  if (!plan.confined || (!plan.namespaces && unshare(CLONE_NEWUTS) != 0)) return;
  constexpr char kName[] = "sandbox";
  if (sethostname(kName, sizeof kName - 1) != 0 || setdomainname(kName, sizeof kName - 1) != 0)
    fail_in_child(plan, "hiding the host's name");
}

[[noreturn]] void run_child(const Plan& plan) {
  char byte;
  if (read(plan.go, &byte, 1) != 1)
    _exit(1);  // the parent writes after the identity maps, or gives up
  setsid();    // own session: signals to the process group, also ^C, do not cross it
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int number = 1; number < 32; ++number)
    signal(number, SIG_DFL);
  if (plan.namespaces) {
    // Raw calls: libc's would notify the other threads, which do not exist here.
    if (plan.drop_groups && syscall(SYS_setgroups, 0, nullptr) != 0)
      fail_in_child(plan, "dropping groups");
    if (syscall(SYS_setresgid, 0, 0, 0) != 0 || syscall(SYS_setresuid, 0, 0, 0) != 0)
      fail_in_child(plan, "changing identity");
    enter_new_root(plan);
  }
  hide_host_name(plan);
  if (chdir("/") != 0) fail_in_child(plan, "changing the folder");
  umask(077);
  // Every other descriptor closes at exec; those without the flag are closed here.
  constexpr int kControl = 3, kHigh = 200;
  const int control = fcntl(plan.control, F_DUPFD, kHigh);
  const int errors = fcntl(plan.errors, F_DUPFD, kHigh);
  // From the new root: through a descriptor of the old one its times could be changed.
  const int null =
      fcntl(plan.namespaces ? open("/dev/null", O_RDWR | O_CLOEXEC) : plan.null, F_DUPFD, kHigh);
  const int failure = fcntl(plan.failure, F_DUPFD_CLOEXEC, kHigh);
  if (control < 0 || errors < 0 || null < 0 || failure < 0)
    fail_in_child(plan, "arranging descriptors");
  if (dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(errors, 2) < 0 ||
      dup2(control, kControl) < 0 || dup3(failure, kControl + 1, O_CLOEXEC) < 0)
    fail_in_child(plan, "arranging descriptors");
  if (syscall(SYS_close_range, kControl + 2, ~0u, 0) != 0)
    for (int descriptor = kControl + 2; descriptor < 65536; ++descriptor)
      close(descriptor);
  execve(plan.executable.c_str(), plan.arguments.data(), plan.environment.data());
  const int error = errno;
  [[maybe_unused]] ssize_t ignored = write(kControl + 1, &error, sizeof error);
  ignored = write(kControl + 1, "starting python", 15);
  _exit(1);
}

bool write_text(const std::string& path, const std::string& text) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// Root in the new namespace is an ordinary user outside: the current one, or nobody if that is
// root.
bool write_identity_maps(pid_t pid, bool keep_groups) {
  const std::string folder = fmt::format("/proc/{}/", pid);
  if (!keep_groups && write_text(folder + "uid_map", fmt::format("0 {} 1", kNobody)))
    return write_text(folder + "gid_map", fmt::format("0 {} 1", kNobody));
  if (keep_groups) write_text(folder + "setgroups", "deny");
  return write_text(folder + "uid_map", fmt::format("0 {} 1", geteuid())) &&
         write_text(folder + "gid_map", fmt::format("0 {} 1", getegid()));
}

[[noreturn]] void throw_failure(const std::string& report) {
  int error = 0;
  std::string step = "setting up";
  if (report.size() >= sizeof error) {
    std::memcpy(&error, report.data(), sizeof error);
    step = report.substr(sizeof error);
  }
  throw RunError(
      fmt::format("the sandbox cannot be set up: {} failed ({})", step, std::strerror(error)),
      {.remedy = "see `antisd doctor`"});
}

}  // namespace

ConfinedProcess launch_python(const Interpreter& interpreter, const std::string& script,
                              Confinement confinement) {
  Plan plan;
  if (confinement == Confinement::kNamespaces) plan = plan_root(interpreter);
  plan.confined = confinement != Confinement::kNone;
  plan.namespaces = confinement == Confinement::kNamespaces;
  plan.drop_groups = plan.namespaces && geteuid() == 0;
  plan.executable = interpreter.executable.string();

  std::vector<std::string> arguments = {plan.executable, "-s", "-B", "-c", script};
  // Fixed hashing: a program always gets the same verdict. One thread: forks must be safe.
  std::vector<std::string> environment = {
      "PYTHONHASHSEED=0", "PYTHONSAFEPATH=1",       "PYTHONUTF8=1",      "HOME=/tmp",
      "LANG=C.UTF-8",     "OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1", "TZ=UTC"};
  for (std::string& argument : arguments)
    plan.arguments.push_back(argument.data());
  for (std::string& variable : environment)
    plan.environment.push_back(variable.data());
  plan.arguments.push_back(nullptr);
  plan.environment.push_back(nullptr);

  auto [ours, theirs] = make_socket_pair(SOCK_SEQPACKET);
  UniqueFd errors(memfd_create("errors", MFD_CLOEXEC)), null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!errors || !null) throw_failed("cannot open /dev/null or a memory file", errno);
  auto [go_read, go_write] = make_pipe();
  auto [failure_read, failure_write] = make_pipe();
  plan.control = theirs.get();
  plan.errors = errors.get();
  plan.null = null.get();
  plan.go = go_read.get();
  plan.failure = failure_write.get();

  const long flags = SIGCHLD | (plan.namespaces ? kNamespaces : 0);
  const long pid = syscall(SYS_clone, flags, nullptr, nullptr, nullptr, nullptr);
  if (pid < 0)
    throw RunError(fmt::format("the sandbox cannot be set up: new namespaces are refused ({})",
                               std::strerror(errno)),
                   {.remedy = "see `antisd doctor`"});
  if (pid == 0) {
    // The child's own copy must be closed, or the read below never ends.
    close(go_write.get());
    run_child(plan);
  }
  ConfinedProcess process(static_cast<pid_t>(pid), std::move(ours), std::move(errors));
  theirs.reset();
  failure_write.reset();
  if (plan.namespaces && !write_identity_maps(process.pid(), !plan.drop_groups))
    throw RunError("the sandbox cannot be set up: the identity maps are refused",
                   {.remedy = "see `antisd doctor`"});
  if (write(go_write.get(), "g", 1) != 1)
    throw RunError("the sandbox cannot be set up: it ended at once",
                   {.remedy = "see `antisd doctor`"});
  std::string report;
  char buffer[256];
  for (ssize_t n; (n = read(failure_read.get(), buffer, sizeof buffer)) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    report.append(buffer, static_cast<std::size_t>(n));
  }
  if (!report.empty()) throw_failure(report);
  return process;
}

}  // namespace antisd::inline reward
