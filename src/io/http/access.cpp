#include "io/http/access.h"

#include <fmt/format.h>

namespace antisd::inline io {

bool is_loopback(const std::string& host) {
  // "127.evil.example" is a name that may resolve to any address.
  const bool is_v4 = host.find_first_not_of("0123456789.") == std::string::npos;
  return host == "localhost" || host == "::1" || (is_v4 && host.starts_with("127."));
}

std::string host_of(const std::string& host) {
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

std::string authority_of(const std::string& host, int port) {
  const bool is_v6 = host.find(':') != std::string::npos;
  return fmt::format("{}:{}", is_v6 ? "[" + host + "]" : host, port);
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^
                  static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
  return difference == 0;
}

}  // namespace antisd::inline io
