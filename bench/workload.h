// Lists of lengths for benchmarks, and what attention over them costs.
//
//   for (const std::int64_t length : long_tail(256, /*mean=*/2048, /*cap=*/16'384)) ...
//   const double flops = attention_flops(shape, 0, length);   // of a forward pass
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/model_shape.h"

namespace antisd::bench {

// Many short ones and a few very long: quantiles of a Lomax distribution with exponent 1.5, cut at
// `cap`, whose scale is chosen so that the mean is `mean`; in mixed order, always the same.
std::vector<std::int64_t> long_tail(std::int64_t count, double mean, std::int64_t cap);

// One length per line. InputError with the line that is not one.
std::vector<std::int64_t> read_lengths(const std::string& file);

// Keys that the queries [begin, end) of a sequence see in a layer, together; window 0: all before.
double visible_keys(std::int64_t window, std::int64_t begin, std::int64_t end);

// Of all layers, for queries [begin, end): two products of 2 x heads x head_dim by pair of query
// and key. A backward pass has twice as many.
double attention_flops(const ModelShape& shape, std::int64_t begin, std::int64_t end);

}  // namespace antisd::bench
