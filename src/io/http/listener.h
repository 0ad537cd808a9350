// A listening socket, and how many connections the system allows.
#pragma once

#include <string>

#include "io/unique_fd.h"

namespace antisd::inline io {

// Non-blocking, closed on exec. RunError if the address is in use or not of this machine.
UniqueFd listen_on(const std::string& host, int port);
int port_of(int socket);

// Raises the process's limit of open files if `wanted` connections need it and the system allows
// it, and returns how many fit; some files are left for other uses.
int connections_within_limits(int wanted);

}  // namespace antisd::inline io
