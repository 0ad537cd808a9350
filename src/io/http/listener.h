// A listening socket, and how many connections the system allows beside it.
#pragma once

#include <string>

#include "io/unique_fd.h"

namespace antisd::inline io {

// Does not wait and is closed on exec. RunError where the address is taken or not this machine's.
UniqueFd listen_on(const std::string& host, int port);
int port_of(int socket);

// Raises the process's limit of open files where `wanted` connections need it and the system lets
// it, and returns how many fit: some files are left for everybody else.
int connections_within_limits(int wanted);

}  // namespace antisd::inline io
