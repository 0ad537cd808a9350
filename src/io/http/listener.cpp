#include "io/http/listener.h"

#include <algorithm>
#include <cerrno>
#include <memory>

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "core/error.h"
#include "io/system_error.h"

namespace antisd::inline io {
namespace {

constexpr int kBacklog = 1024;
constexpr int kOtherFiles = 100;  // open besides the connections
constexpr int kFewest = 16;

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

}  // namespace

UniqueFd listen_on(const std::string& host, int port) {
  const std::string where = fmt::format("{}:{}", host, port);
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found))
    throw RunError(fmt::format("cannot listen there: {}", gai_strerror(error)), {.where = where});
  const std::unique_ptr<addrinfo, FreeAddresses> addresses(found);
  int error = 0;
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    UniqueFd listener(socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int yes = 1;
    // Without SO_REUSEPORT, which would let two servers share a port.
    if (listener && setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        bind(listener.get(), address->ai_addr, address->ai_addrlen) == 0 &&
        listen(listener.get(), kBacklog) == 0)
      return listener;
    error = errno;
  }
  throw RunError(fmt::format("cannot listen there: {}", error == EADDRINUSE ? "the port is taken"
                                                        : error == EADDRNOTAVAIL
                                                            ? "the address is not this machine's"
                                                            : system_problem(error)),
                 {.where = where});
}

int port_of(int socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

int connections_within_limits(int wanted) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  const auto needed = static_cast<rlim_t>(wanted + kOtherFiles);
  if (limit.rlim_cur < needed) {
    rlimit raised = {std::min(needed, limit.rlim_max), limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  if (limit.rlim_cur >= needed) return wanted;
  return std::clamp(static_cast<int>(limit.rlim_cur) - kOtherFiles, kFewest, wanted);
}

}  // namespace antisd::inline io
