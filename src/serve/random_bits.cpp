#include "serve/random_bits.h"

#include <sys/random.h>

#include "core/error.h"

namespace antisd::inline serve {

std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  if (getrandom(&bits, sizeof bits, 0) != sizeof bits)
    throw RunError("the system has no random numbers");
  return bits;
}

}  // namespace antisd::inline serve
