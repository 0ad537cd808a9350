#include "reward/code/sandbox_filter.h"

#include <cerrno>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/error.h"
#include "io/unique_fd.h"

namespace antisd::inline reward {
namespace {

constexpr const char* kAllowed[] = {
    // files
    "read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2",
    "pwritev2", "creat", "close", "close_range", "lseek", "fstat", "stat", "lstat", "newfstatat",
    "fstatat64", "statx", "statfs", "fstatfs", "access", "faccessat", "faccessat2", "getdents",
    "getdents64", "readlink", "readlinkat", "getcwd", "chdir", "fchdir", "mkdir", "mkdirat",
    "rmdir", "unlink", "unlinkat", "rename", "renameat", "renameat2", "link", "linkat", "symlink",
    "symlinkat", "fsync", "fdatasync", "umask", "sendfile", "copy_file_range", "dup", "dup2",
    "dup3", "pipe", "pipe2", "eventfd", "eventfd2", "fadvise64",
    // waiting
    "poll", "ppoll", "select", "pselect6", "_newselect", "epoll_create", "epoll_create1",
    "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "nanosleep", "clock_nanosleep",
    "pause", "sched_yield", "futex", "futex_waitv",
    // memory
    "mmap", "munmap", "mremap", "mprotect", "madvise", "brk", "msync", "mincore", "membarrier",
    // signals and timers of the process itself; POSIX timers (timer_create) have no separate limit
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigtimedwait",
    "rt_sigsuspend", "sigaltstack", "alarm", "setitimer", "getitimer", "timerfd_create",
    "timerfd_settime", "timerfd_gettime", "restart_syscall",
    // clocks and system information
    "clock_gettime", "clock_getres", "gettimeofday", "time", "times", "getpid", "gettid", "getppid",
    "getpgrp", "getpgid", "getsid", "setsid", "setpgid", "getuid", "geteuid", "getgid", "getegid",
    "getgroups", "getresuid", "getresgid", "getpriority", "getrlimit", "getrusage", "sysinfo",
    "uname", "getrandom", "getcpu", "capget", "sched_getaffinity", "sched_getparam",
    "sched_getscheduler", "sched_get_priority_max", "sched_get_priority_min",
    // threads, children, exit
    "set_robust_list", "get_robust_list", "rseq", "arch_prctl", "set_tid_address", "wait4",
    "waitid", "exit", "exit_group",
    // a process's own socket pair (asyncio's wake-up) is allowed, but see socketpair below
    "sendto", "recvfrom", "sendmsg", "recvmsg", "shutdown", "getsockopt", "setsockopt",
    "getsockname", "getpeername"};

constexpr const char* kSignals[] = {"kill", "tkill", "tgkill", "rt_sigqueueinfo",
                                    "rt_tgsigqueueinfo"};

// Not covered by Landlock: a user's file can be changed by its path.
constexpr const char* kFileChanges[] = {"open",     "openat",    "openat2",   "chmod",     "fchmod",
                                        "fchmodat", "truncate",  "ftruncate", "fallocate", "utime",
                                        "utimes",   "utimensat", "futimesat"};

// Excluded: leases, owners and signals of a descriptor, folder watches, pipe sizes. They reach
// other processes through shared files, or use up system-wide limits.
constexpr int kDescriptorCommands[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD,
                                       F_SETFD, F_GETFL,         F_SETFL};
constexpr int kLocks[] = {F_GETLK, F_SETLK, F_SETLKW};

constexpr unsigned long kNamespaceFlags = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                          CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
                                          CLONE_NEWNET;

using Context = std::unique_ptr<void, void (*)(scmp_filter_ctx)>;

class Builder {
 public:
  Builder() : context_(seccomp_init(SCMP_ACT_ERRNO(EPERM)), seccomp_release) {
    if (!context_) throw RunError("libseccomp cannot make a filter");
  }

  void add(std::uint32_t action, const char* name,
           std::initializer_list<scmp_arg_cmp> conditions = {}) {
    const int number = seccomp_syscall_resolve_name(name);
    if (number < 0) return;  // not a system call on this processor
    const int result =
        seccomp_rule_add_array(context_.get(), action, number,
                               static_cast<unsigned>(conditions.size()), conditions.begin());
    if (result != 0)
      throw RunError(
          fmt::format("libseccomp refuses a rule for {}: {}", name, std::strerror(-result)));
  }

  std::string code() const {
    const UniqueFd file(memfd_create("filter", MFD_CLOEXEC));
    if (!file || seccomp_export_bpf(context_.get(), file.get()) != 0)
      throw RunError("libseccomp cannot write its filter");
    std::string code(static_cast<std::size_t>(lseek(file.get(), 0, SEEK_END)), '\0');
    if (pread(file.get(), code.data(), code.size(), 0) != static_cast<ssize_t>(code.size()))
      throw RunError("the seccomp filter cannot be read back");
    return code;
  }

 private:
  Context context_;
};

void allow_command(Builder& builder, const char* name, unsigned long command) {
  builder.add(SCMP_ACT_ALLOW, name, {SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, command)});
}

// Allows opening without O_TRUNC, or for writing, which Landlock checks: its first versions allow
// truncating a file that is opened for reading.
void allow_opening_to_read(Builder& builder) {
  const auto add = [&](unsigned long mask, unsigned long flags) {
    builder.add(SCMP_ACT_ALLOW, "open", {SCMP_A1(SCMP_CMP_MASKED_EQ, mask, flags)});
    builder.add(SCMP_ACT_ALLOW, "openat", {SCMP_A2(SCMP_CMP_MASKED_EQ, mask, flags)});
  };
  add(O_TRUNC, 0);
  add(O_ACCMODE, O_WRONLY);
  add(O_ACCMODE, O_RDWR);
  builder.add(SCMP_ACT_ERRNO(ENOSYS), "openat2");  // its flags are in memory, not in registers
}

}  // namespace

std::string build_syscall_filter(const FilterOptions& options) {
  Builder builder;
  for (const char* name : kAllowed)
    builder.add(SCMP_ACT_ALLOW, name);
  builder.add(SCMP_ACT_ERRNO(ENOSYS), "clone3");
  if (options.fork) {
    builder.add(SCMP_ACT_ALLOW, "clone", {SCMP_A0(SCMP_CMP_MASKED_EQ, kNamespaceFlags, 0)});
    builder.add(SCMP_ACT_ALLOW, "fork");
    builder.add(SCMP_ACT_ALLOW, "vfork");
  } else {
    builder.add(SCMP_ACT_ALLOW, "clone",
                {SCMP_A0(SCMP_CMP_MASKED_EQ, kNamespaceFlags | CLONE_THREAD, CLONE_THREAD)});
  }
  if (options.signals)
    for (const char* name : kSignals)
      builder.add(SCMP_ACT_ALLOW, name);
  for (const int command : kDescriptorCommands)
    allow_command(builder, "fcntl", static_cast<unsigned long>(command));
  if (options.file_changes) {
    for (const char* name : kFileChanges)
      builder.add(SCMP_ACT_ALLOW, name);
    for (const int command : kLocks)
      allow_command(builder, "fcntl", static_cast<unsigned long>(command));
  } else {
    allow_opening_to_read(builder);
  }
  builder.add(SCMP_ACT_ALLOW, "socketpair", {SCMP_A0(SCMP_CMP_EQ, AF_UNIX)});
  for (const unsigned long request :
       {0x5401ul, 0x5413ul, 0x5421ul, 0x541Bul, 0x5450ul, 0x5451ul})  // TCGETS, TIOCGWINSZ,
    allow_command(builder, "ioctl", request);  // FIONBIO, FIONREAD, FIO(N)CLEX
  builder.add(SCMP_ACT_ALLOW, "prlimit64", {SCMP_A0(SCMP_CMP_EQ, 0)});
  builder.add(SCMP_ACT_ALLOW, "setrlimit");
  for (const unsigned long request : {15ul, 16ul})  // PR_SET_NAME, PR_GET_NAME
    builder.add(SCMP_ACT_ALLOW, "prctl", {SCMP_A0(SCMP_CMP_EQ, request)});
  return builder.code();
}

}  // namespace antisd::inline reward
