#include "algo/named_sums.h"

#include "core/check.h"

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

// A sum is the length of its name, the bytes of the name, and the numbers of its moments.
std::vector<double> NamedSums::message() const {
  std::vector<double> message;
  for (const auto& [name, sum] : sums_) {
    message.push_back(static_cast<double>(name.size()));
    for (const char c : name)
      message.push_back(static_cast<unsigned char>(c));
    message.insert(message.end(), {static_cast<double>(sum.count), sum.sum, sum.sum_squares,
                                   sum.min, sum.max, static_cast<double>(sum.negative)});
  }
  return message;
}

void NamedSums::add_message(std::span<const double> message) {
  const auto take = [&](std::size_t count) {
    ANTISD_CHECK_LE(count, message.size());
    const std::span<const double> taken = message.first(count);
    message = message.subspan(count);
    return taken;
  };
  while (!message.empty()) {
    std::string name;
    for (const double byte : take(static_cast<std::size_t>(take(1)[0])))
      name += static_cast<char>(static_cast<unsigned char>(byte));
    const std::span<const double> numbers = take(6);
    (*this)[name].add(Moments{.count = static_cast<std::int64_t>(numbers[0]),
                              .sum = numbers[1],
                              .sum_squares = numbers[2],
                              .min = numbers[3],
                              .max = numbers[4],
                              .negative = static_cast<std::int64_t>(numbers[5])});
  }
}

}  // namespace antisd::inline algo
