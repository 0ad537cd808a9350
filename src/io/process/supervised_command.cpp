#include "io/process/supervised_command.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "core/error.h"
#include "io/process/command_keeper.h"
#include "io/process/pipes.h"
#include "io/system_error.h"

namespace antisd::inline io {
namespace {

constexpr int kKeeperEndMilliseconds = 15'000;  // a keeper stops killing before that

// The process that starts keepers.
class Starter {
 public:
  static Starter& instance() {
    static Starter starter;
    return starter;
  }

  void launch() {
    const std::lock_guard lock(mutex_);
    if (!control_) launch_locked();
  }

  void start(const std::string& command, int channel, int link) {
    const std::lock_guard lock(mutex_);
    if (control_ && send_order(command, channel, link)) return;
    launch_locked();  // the first time, or after it was killed
    if (!send_order(command, channel, link)) throw_failed("cannot start a process", errno);
  }

 private:
  void launch_locked() {
    auto [ours, theirs] = make_socket_pair(SOCK_SEQPACKET);
    if (start_keeper_starter(theirs.get()) < 0) throw_failed("cannot start a process", errno);
    control_ = std::move(ours);
  }

  bool send_order(const std::string& command, int channel, int link) {
    iovec text = {const_cast<char*>(command.c_str()), command.size() + 1};
    alignas(cmsghdr) char space[CMSG_SPACE(2 * sizeof(int))] = {};
    msghdr message = {};
    message.msg_iov = &text;
    message.msg_iovlen = 1;
    message.msg_control = space;
    message.msg_controllen = sizeof space;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(2 * sizeof(int));
    const int descriptors[] = {channel, link};
    std::memcpy(CMSG_DATA(header), descriptors, sizeof descriptors);
    ssize_t sent;
    while ((sent = sendmsg(control_.get(), &message, MSG_NOSIGNAL)) < 0 && errno == EINTR) {
    }
    return sent >= 0;
  }

  std::mutex mutex_;
  UniqueFd control_;
};

}  // namespace

void start_supervision() {
  Starter::instance().launch();
}

SupervisedCommand::SupervisedCommand(const std::string& command, UniqueFd channel) {
  if (command.size() >= kMaxCommand)
    throw InputError("the command is too long",
                     {.where = command.substr(0, 100), .remedy = "put it into a script"});
  auto [ours, theirs] = make_socket_pair(SOCK_SEQPACKET);
  Starter::instance().start(command, channel.get(), theirs.get());
  link_ = std::move(ours);
}

SupervisedCommand::~SupervisedCommand() {
  shutdown(link_.get(), SHUT_WR);  // the keeper notices, kills and exits
  char ignored[kMaxKeeperMessage];
  pollfd one = {link_.get(), POLLIN, 0};
  while (poll(&one, 1, kKeeperEndMilliseconds) > 0 &&
         recv(link_.get(), ignored, sizeof ignored, 0) > 0) {
  }
}

bool SupervisedCommand::read_message(int milliseconds) {
  pollfd one = {link_.get(), POLLIN, 0};
  if (poll(&one, 1, milliseconds) <= 0) return false;
  char message[kMaxKeeperMessage];
  const ssize_t size = recv(link_.get(), message, sizeof message, MSG_DONTWAIT);
  closed_ = size == 0;
  if (size < 1) return false;
  if (message[0] == kKeeperErrors)
    errors_.append(message + 1, static_cast<std::size_t>(size - 1));
  else if (size == 1 + static_cast<ssize_t>(sizeof(int)))
    std::memcpy(&status_.emplace(), message + 1, sizeof(int));
  return true;
}

std::optional<int> SupervisedCommand::wait_status(int milliseconds) {
  while (!status_ && read_message(milliseconds)) {
  }
  return status_;
}

const std::string& SupervisedCommand::first_errors() {
  while (read_message(0)) {
  }
  return errors_;
}

}  // namespace antisd::inline io
