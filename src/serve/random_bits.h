// Random bits of the system: names of answers, and the seed of a request that gives none.
#pragma once

#include <cstdint>

namespace antisd::inline serve {

std::uint64_t random_bits();

}  // namespace antisd::inline serve
