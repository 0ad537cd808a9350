#include "algo/phi.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace antisd::inline algo {

double softplus(double u) {
  return std::max(u, 0.0) + std::log1p(std::exp(-std::abs(u)));
}

double phi(double u) {
  return (softplus(u) - std::numbers::ln2) / 2;
}

}  // namespace antisd::inline algo
