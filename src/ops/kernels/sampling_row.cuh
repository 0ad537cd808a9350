// One row of logits, as the kernels of sampling see it. Weights are integers (units of 2^-40 of the
// most likely token's), so that sums do not depend on their order.
#pragma once

#include "ops/kernels/reduce.cuh"
#include "ops/kernels/sampling_filter.h"

namespace antisd::inline ops {

using Mass = unsigned long long;
inline constexpr float kMassOne = 1099511627776.0f;  // 2^40

struct RowTotals {
  float maximum;
  float log_raw;    // log of the sum of exp(z - maximum)
  double tempered;  // sum of exp((z - maximum) / temperature)

  __device__ bool finite() const { return isfinite(maximum) && isfinite(tempered); }
};

__device__ __forceinline__ double segment_mass(const RowSegment& part, float maximum,
                                               float inverse_temperature) {
  return part.tempered * exp(static_cast<double>(part.maximum - maximum) * inverse_temperature);
}

// In the order of segments, so the bits are reproducible.
__device__ __forceinline__ RowTotals row_totals(const RowSegment* parts, int segments,
                                                float inverse_temperature) {
  float maximum = parts[0].maximum;
  for (int s = 1; s < segments; ++s)
    maximum = fmaxf(maximum, parts[s].maximum);
  double raw = 0, tempered = 0;
  for (int s = 0; s < segments; ++s) {
    raw += parts[s].raw * exp(static_cast<double>(parts[s].maximum - maximum));
    tempered += segment_mass(parts[s], maximum, inverse_temperature);
  }
  return {maximum, static_cast<float>(log(raw)), tempered};
}

// Of a row's segments; every lane of the warp gets it.
__device__ __forceinline__ float segments_maximum(const RowSegment* parts, int segments) {
  float maximum = -INFINITY;
  for (int s = threadIdx.x % kWarp; s < segments; s += kWarp)
    maximum = fmaxf(maximum, parts[s].maximum);
  return warp_max(maximum);
}

// row_totals() by a warp: the lanes compute the terms, which are added in the same order.
__device__ __forceinline__ RowTotals warp_row_totals(const RowSegment* parts, int segments,
                                                     float inverse_temperature) {
  const float maximum = segments_maximum(parts, segments);
  double raw = 0, tempered = 0;
  for (int first = 0; first < segments; first += kWarp) {
    const int own = first + static_cast<int>(threadIdx.x) % kWarp;
    double raw_term = 0, tempered_term = 0;
    if (own < segments) {
      raw_term = parts[own].raw * exp(static_cast<double>(parts[own].maximum - maximum));
      tempered_term = segment_mass(parts[own], maximum, inverse_temperature);
    }
    for (int lane = 0; lane < min(kWarp, segments - first); ++lane) {
      raw += __shfl_sync(kAllLanes, raw_term, lane);
      tempered += __shfl_sync(kAllLanes, tempered_term, lane);
    }
  }
  return {maximum, static_cast<float>(log(raw)), tempered};
}

// Larger for larger logits; both zeros are equal.
__device__ __forceinline__ unsigned key_of(float z) {
  const unsigned bits = __float_as_uint(z + 0.0f);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ float logit_of(unsigned key) {
  return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

// exp of it is the token's weight relative to the most likely one's.
struct RowScale {
  float maximum, inverse_temperature;

  __device__ __forceinline__ float exponent(float z) const {
    return (z - maximum) * inverse_temperature;
  }
};

// floor(2^40 weight) for a weight from 0 to 1, in two parts of 20 bits: the conversion of a float
// to 64 bits is slow. Added to 2^23 and rounded down, a number below that leaves its integer part
// in the sum's lower bits.
__device__ __forceinline__ Mass mass_of(float weight) {
  constexpr float kPart = 1 << 20, kInteger = 1 << 23;
  const float scaled = weight * kPart, upper = __fadd_rd(scaled, kInteger);
  const float rest = (scaled - (upper - kInteger)) * kPart;
  const unsigned high = __float_as_uint(upper) & 0x7fffffu,
                 low = __float_as_uint(__fadd_rd(rest, kInteger)) & 0x7fffffu;
  return Mass{high >> 12} << 32 | (high << 20 | low);
}

__device__ __forceinline__ Mass warp_total(Mass value) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    value += __shfl_xor_sync(kAllLanes, value, offset);
  return value;
}

// The sum over this lane and those before it.
__device__ __forceinline__ Mass warp_through(Mass value) {
#pragma unroll
  for (int offset = 1; offset < kWarp; offset *= 2) {
    const Mass other = __shfl_up_sync(kAllLanes, value, offset);
    if (threadIdx.x % kWarp >= offset) value += other;
  }
  return value;
}

// The masses of all threads before this one, and of all. `shared` has one word per warp. All
// threads of the block call it; it begins and ends with a barrier.
struct BlockScan {
  Mass before, total;
};

__device__ __forceinline__ BlockScan block_scan(Mass value, Mass* shared) {
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const Mass through = warp_through(value);
  __syncthreads();
  if (lane == kWarp - 1) shared[warp] = through;
  __syncthreads();
  BlockScan scan = {through - value, 0};
  for (int w = 0; w < static_cast<int>(blockDim.x) / kWarp; ++w) {
    if (w < warp) scan.before += shared[w];
    scan.total += shared[w];
  }
  __syncthreads();
  return scan;
}

}  // namespace antisd::inline ops
