#include "io/process/command_keeper.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace antisd::inline io {
namespace {

constexpr std::size_t kToldBytes = 4000;
constexpr int kKillRounds = 5000, kRoundMicroseconds = 2000;  // 10 s for the last process to end

// Without the handlers of pthread_atfork, which take locks.
pid_t plain_fork() {
  return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
}

void block_all_signals() {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
}

[[noreturn]] void run_shell(const char* command, int channel, int errors) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // if the keeper is killed
  for (const int number : {SIGPIPE, SIGCHLD, SIGXFSZ})
    signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (dup2(channel, 0) < 0 || dup2(channel, 1) < 0 || dup2(errors, 2) < 0) _exit(127);
  const char* arguments[] = {"/bin/sh", "-c", command, nullptr};
  execve("/bin/sh", const_cast<char**>(arguments), environ);
  _exit(127);
}

// The parent of a process, from /proc/PID/stat: "PID (NAME) STATE PARENT ...".
pid_t parent_of(const char* number) {
  char path[64] = "/proc/";
  strcat(strcat(path, number), "/stat");
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  char text[512];
  const ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  if (size <= 0) return -1;
  text[size] = '\0';
  const char* after_name = strrchr(text, ')');
  if (after_name == nullptr || strlen(after_name) < 5) return -1;
  pid_t parent = 0;
  for (const char* digit = after_name + 4; *digit >= '0' && *digit <= '9'; ++digit)
    parent = parent * 10 + (*digit - '0');
  return parent;
}

// A child keeps its pid until it is waited for, which only this process does: the signal cannot
// reach another process.
void kill_children() {
  const int folder = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  const pid_t self = static_cast<pid_t>(syscall(SYS_getpid));
  alignas(8) char entries[16384];
  constexpr std::size_t kLength = 16, kName = 19;  // their offsets in linux_dirent64
  for (long size; (size = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0;)
    for (long at = 0; at < size;) {
      std::uint16_t length;
      memcpy(&length, entries + at + kLength, sizeof length);
      const char* name = entries + at + kName;
      at += length;
      if (*name < '1' || *name > '9' || strlen(name) > 10) continue;
      if (parent_of(name) == self) kill(static_cast<pid_t>(strtol(name, nullptr, 10)), SIGKILL);
    }
  close(folder);
}

class Keeper {
 public:
  Keeper(int link, int errors, pid_t shell) : link_(link), errors_(errors), shell_(shell) {
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    signals_ = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
  }

  // Until the other end of the link closes.
  void watch() {
    while (true) {
      pollfd waits[] = {{link_, POLLIN, 0},
                        {signals_, POLLIN, 0},
                        {pending_ == 0 ? errors_ : -1, POLLIN, 0},
                        {pending_ > 0 ? 2 : -1, POLLOUT, 0}};
      if (poll(waits, 4, -1) < 0) continue;
      if (waits[0].revents != 0) return;
      if (waits[1].revents != 0) collect();
      if (waits[2].revents != 0) take_errors();
      if (waits[3].revents != 0) hand_on_errors();
    }
  }

  // Each round kills a generation: its children then become this process's children.
  void end_all() {
    kill(-shell_, SIGKILL);
    for (int round = 0; round < kKillRounds; ++round) {
      kill_children();
      pid_t ended;
      while ((ended = waitpid(-1, nullptr, WNOHANG)) > 0) {
      }
      if (ended < 0 && errno == ECHILD) break;
      usleep(kRoundMicroseconds);
    }
    do {
      while (pending_ > 0)
        hand_on_errors();
    } while (errors_ >= 0 && take_errors());
  }

 private:
  void collect() {
    signalfd_siginfo ignored;
    while (read(signals_, &ignored, sizeof ignored) > 0) {
    }
    int status;
    for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (ended != shell_) continue;
      if (pending_ == 0 && errors_ >= 0) take_errors();  // its last output before its end
      char message[1 + sizeof status] = {kKeeperStatus};
      memcpy(message + 1, &status, sizeof status);
      send(link_, message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
  }

  // False if there is nothing to take now.
  bool take_errors() {
    const ssize_t size = read(errors_, buffer_ + 1, sizeof buffer_ - 1);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (size <= 0) {
      close(errors_);
      errors_ = -1;
      return false;
    }
    pending_ = static_cast<std::size_t>(size);
    written_ = 0;
    const std::size_t told = std::min(pending_, kToldBytes - told_);
    told_ += told;
    buffer_[0] = kKeeperErrors;
    if (told > 0) send(link_, buffer_, 1 + told, MSG_NOSIGNAL | MSG_DONTWAIT);
    return true;
  }

  void hand_on_errors() {
    const ssize_t size = write(2, buffer_ + 1 + written_, pending_ - written_);
    if (size < 0 && errno == EINTR) return;
    written_ += size > 0 ? static_cast<std::size_t>(size) : pending_;  // no reader: dropped
    if (written_ >= pending_) pending_ = 0;
  }

  int link_, errors_, signals_ = -1;
  pid_t shell_;
  char buffer_[kMaxKeeperMessage];
  std::size_t pending_ = 0, written_ = 0, told_ = 0;
};

[[noreturn]] void run_keeper(const char* command, int channel, int link) {
  signal(SIGCHLD, SIG_DFL);
  setsid();
  int errors[2];
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 || pipe2(errors, O_CLOEXEC) != 0) _exit(1);
  const pid_t shell = plain_fork();
  if (shell < 0) _exit(1);
  if (shell == 0) run_shell(command, channel, errors[1]);
  close(channel);
  close(errors[1]);
  fcntl(errors[0], F_SETFL, O_NONBLOCK);
  Keeper keeper(link, errors[0], shell);
  keeper.watch();
  keeper.end_all();
  _exit(0);
}

// The descriptors of a request; -1 if there were none.
struct Order {
  int channel = -1, link = -1;
};

Order read_order(int control, char* text) {
  iovec part = {text, kMaxCommand};
  alignas(cmsghdr) char space[CMSG_SPACE(2 * sizeof(int))];
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  ssize_t size;
  while ((size = recvmsg(control, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
  }
  if (size <= 0) _exit(0);  // the other end is closed
  Order order;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_len == CMSG_LEN(2 * sizeof(int)))
    memcpy(&order, CMSG_DATA(header), sizeof order);
  return order;
}

[[noreturn]] void run_starter(int given) {
  block_all_signals();
  setsid();
  signal(SIGCHLD, SIG_IGN);  // keepers need not be waited for
  constexpr int kControl = 3, kHigh = 200;
  const int control = fcntl(given, F_DUPFD, kHigh), null = open("/dev/null", O_RDWR | O_CLOEXEC);
  // Keeps none of the run's descriptors open: a lock on its folder would outlive it.
  if (control < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
      dup3(control, kControl, O_CLOEXEC) < 0)
    _exit(1);
  if (syscall(SYS_close_range, kControl + 1, ~0u, 0) != 0)
    for (int descriptor = kControl + 1; descriptor < 65536; ++descriptor)
      close(descriptor);
  static char text[kMaxCommand];
  while (true) {
    const Order order = read_order(kControl, text);
    if (order.channel < 0) continue;
    if (plain_fork() == 0) {
      close(kControl);
      run_keeper(text, order.channel, order.link);
    }
    close(order.channel);
    close(order.link);
  }
}

}  // namespace

int start_keeper_starter(int control) {
  const pid_t pid = plain_fork();
  if (pid == 0) run_starter(control);
  return pid;
}

}  // namespace antisd::inline io
