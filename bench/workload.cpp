#ifdef ANTISD_TORCH

#include "bench/workload.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <numeric>

#include <fmt/format.h>

#include "core/error.h"

namespace antisd::bench {
namespace {

constexpr double kTailExponent = 1.5;
constexpr std::int64_t kMostTokens = 1 << 20;

// Entry i of `count` quantiles at this scale.
std::int64_t tail_length(double scale, std::int64_t i, std::int64_t count, std::int64_t cap) {
  const double rest = 1 - (static_cast<double>(i) + 0.5) / static_cast<double>(count);
  const double length = scale * (std::pow(rest, -1 / kTailExponent) - 1);
  return std::llround(std::clamp(length, 2.0, static_cast<double>(cap)));
}

// The smallest number from 7919 that has no divisor in common with `count`.
std::int64_t stride_for(std::int64_t count) {
  std::int64_t stride = 7919;
  while (std::gcd(stride, count) != 1)
    ++stride;
  return stride;
}

}  // namespace

std::vector<std::int64_t> long_tail(std::int64_t count, double mean, std::int64_t cap) {
  if (static_cast<double>(cap) <= mean)
    throw InputError("the mean length has to be less", {.where = "--cap"});
  double low = 1e-3, high = 1e9;
  for (int round = 0; round < 100; ++round) {
    const double scale = std::sqrt(low * high);
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i)
      sum += static_cast<double>(tail_length(scale, i, count, cap));
    (sum < mean * static_cast<double>(count) ? low : high) = scale;
  }
  std::vector<std::int64_t> lengths;
  const std::int64_t stride = stride_for(count);
  for (std::int64_t i = 0; i < count; ++i)
    lengths.push_back(tail_length(high, i * stride % count, count, cap));
  return lengths;
}

std::vector<std::int64_t> read_lengths(const std::string& file) {
  std::ifstream in(file);
  if (!in)
    throw InputError("cannot be read",
                     {.where = file, .remedy = "name a file with one length per line"});
  std::vector<std::int64_t> lengths;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    std::int64_t length = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), length);
    if (error != std::errc() || end != line.data() + line.size() || length < 2 ||
        length > kMostTokens)
      throw InputError(
          fmt::format("'{}' is not a number of tokens from 2 to {}", line, kMostTokens),
          {.where = fmt::format("{}:{}", file, number)});
    lengths.push_back(length);
  }
  if (lengths.empty()) throw InputError("no lengths", {.where = file});
  return lengths;
}

double visible_keys(std::int64_t window, std::int64_t begin, std::int64_t end) {
  // Of the first queries, each sees one key more than the one before.
  const auto up_to = [&](std::int64_t queries) {
    const std::int64_t growing = window > 0 ? std::min(window, queries) : queries;
    const auto sum = static_cast<double>(growing) * static_cast<double>(growing + 1) / 2;
    return sum + static_cast<double>(queries - growing) * static_cast<double>(window);
  };
  return up_to(end) - up_to(begin);
}

double attention_flops(const ModelShape& shape, std::int64_t begin, std::int64_t end) {
  double pairs = 0;
  for (const LayerShape& layer : shape.layers)
    pairs += visible_keys(layer.window, begin, end);
  return 4 * static_cast<double>(shape.heads * shape.head_dim) * pairs;
}

}  // namespace antisd::bench

#endif
