#include "algo/named_sums.h"

namespace antisd::inline algo {

Moments& NamedSums::operator[](std::string_view name) {
  for (auto& [known, sum] : sums_) {
    if (known == name) return sum;
  }
  return sums_.emplace_back(std::string(name), Moments()).second;
}

const Moments& NamedSums::at(std::string_view name) const {
  static const Moments nothing;
  for (const auto& [known, sum] : sums_) {
    if (known == name) return sum;
  }
  return nothing;
}

void NamedSums::add(const NamedSums& other) {
  for (const auto& [name, sum] : other.sums_)
    (*this)[name].add(sum);
}

}  // namespace antisd::inline algo
