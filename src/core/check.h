// Programming errors: a broken invariant stops the work with both values and the source location.
// Errors that a user can cause throw Error (core/error.h).
#pragma once

#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace antisd::inline core {

class CheckFailure : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void fail_check(const char* file, int line, const std::string& text);

}  // namespace antisd::inline core

#define ANTISD_CHECK(condition)                                             \
  do {                                                                      \
    if (!(condition)) ::antisd::fail_check(__FILE__, __LINE__, #condition); \
  } while (false)

#define ANTISD_CHECK_OP(left, op, right)                                                 \
  do {                                                                                   \
    const auto& antisd_left = (left);                                                    \
    const auto& antisd_right = (right);                                                  \
    if (!(antisd_left op antisd_right))                                                  \
      ::antisd::fail_check(__FILE__, __LINE__,                                           \
                           fmt::format("{} {} {} (here: {} and {})", #left, #op, #right, \
                                       antisd_left, antisd_right));                      \
  } while (false)

#define ANTISD_CHECK_EQ(left, right) ANTISD_CHECK_OP(left, ==, right)
#define ANTISD_CHECK_NE(left, right) ANTISD_CHECK_OP(left, !=, right)
#define ANTISD_CHECK_LT(left, right) ANTISD_CHECK_OP(left, <, right)
#define ANTISD_CHECK_LE(left, right) ANTISD_CHECK_OP(left, <=, right)
