#include "io/process/pipes.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/socket.h>

#include "io/system_error.h"

namespace antisd::inline io {

Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw_failed("cannot make a pipe", errno);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::pair<UniqueFd, UniqueFd> make_socket_pair(int type) {
  int ends[2];
  if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0)
    throw_failed("cannot make a socket pair", errno);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace antisd::inline io
