// Who may use a server: addresses of this machine alone, and secrets.
#pragma once

#include <string>
#include <string_view>

namespace antisd::inline io {

// Whether only this machine can reach it: an address of 127.0.0.0/8, ::1 or "localhost".
bool is_loopback(const std::string& host);

// "localhost:8484" -> "localhost", "[::1]:8484" -> "::1"
std::string host_of(const std::string& host);

// An address with its port, for a URL; an IPv6 address stands in brackets.
std::string authority_of(const std::string& host, int port);

// Its time does not depend on where the two differ.
bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace antisd::inline io
