#include "dist/address.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/error.h"

namespace antisd::inline dist {
namespace {

constexpr double kToResolve = 20;  // seconds

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses resolve(const std::string& host, int port, double wait_s) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_DGRAM;
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::duration<double>(std::min(wait_s, kToResolve));
  while (true) {
    addrinfo* found = nullptr;
    const int problem = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found);
    if (problem == 0) return {found, &freeaddrinfo};
    if (std::chrono::steady_clock::now() >= end)
      throw RunError(
          fmt::format("the host of rank 0, '{}', is not known here: {}", host,
                      gai_strerror(problem)),
          {.remedy = "set MASTER_ADDR to a name or an address that all nodes can reach"});
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

// The local end of a connection to `to`; empty, with errno, where there is no way. A datagram
// socket connects without sending anything.
std::string local_end(const addrinfo& to) {
  const int descriptor = socket(to.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return "";
  sockaddr_storage local{};
  socklen_t length = sizeof(local);
  char text[NI_MAXHOST] = "";
  if (connect(descriptor, to.ai_addr, to.ai_addrlen) == 0 &&
      getsockname(descriptor, reinterpret_cast<sockaddr*>(&local), &length) == 0)
    getnameinfo(reinterpret_cast<sockaddr*>(&local), length, text, sizeof(text), nullptr, 0,
                NI_NUMERICHOST);
  const int problem = errno;
  close(descriptor);
  errno = problem;
  return text;
}

}  // namespace

std::string address_towards(const std::string& host, int port, double wait_s) {
  const Addresses addresses = resolve(host, port, wait_s);
  for (const addrinfo* to = addresses.get(); to != nullptr; to = to->ai_next) {
    const std::string address = local_end(*to);
    if (!address.empty()) return address;
  }
  throw RunError(fmt::format("no network interface leads to the host of rank 0, '{}': {}", host,
                             std::generic_category().message(errno)),
                 {.remedy = "set MASTER_ADDR to an address that all nodes can reach"});
}

}  // namespace antisd::inline dist
