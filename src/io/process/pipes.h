// Pipes and socket pairs for communication with other processes; closed on exec.
#pragma once

#include <utility>

#include <sys/socket.h>

#include "io/unique_fd.h"

namespace antisd::inline io {

struct Pipe {
  UniqueFd read, write;
};

// RunError if the system fails.
Pipe make_pipe();
std::pair<UniqueFd, UniqueFd> make_socket_pair(int type);  // SOCK_STREAM, SOCK_SEQPACKET

}  // namespace antisd::inline io
