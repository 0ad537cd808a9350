// Top-k, top-p and min-p. All three keep the first tokens in the order "larger logit, then lower
// id", so a filter is a place in that order, the cut. A row is read twice:
//
//   histogram_kernel  the mass and count of the tokens by bin of their distance to the maximum
//   find_kernel       the bins that contain the cut
//   collect_kernel    the tokens of these bins, and of each segment the mass in better bins
//   draw_kernel       sorts the collected tokens, finds the cut, then the segment and token drawn
//
// Bins are logarithmic: 256 for each factor of two in the distance, over four such factors to both
// sides of the row's typical one. So a row's tokens spread over many bins whatever the scale of its
// logits, which keeps the collected few and spares the histogram's shared memory conflicts. Rows
// with too many for the list (equal logits) go to launch_radix_draw().
#include <type_traits>

#include "ops/kernels/launch.h"
#include "ops/kernels/sampling_row.cuh"

namespace antisd::inline ops {
namespace {

constexpr int kBins = 2048;

constexpr int kListed = 4096;  // tokens of a row's list
constexpr int kHistogramThreads = 512, kFindThreads = 256, kCollectThreads = 256,
              kDrawThreads = 512;
constexpr float kLeastExponent = -28;  // below it a mass is 0: -40 log 2 = -27.7
constexpr int kBinsPerThread = kBins / kFindThreads;

// Exponent and eight bits of a distance's mantissa.
__device__ __forceinline__ int upper_bits(float distance) {
  return static_cast<int>(__float_as_uint(distance) >> 15);
}

// A row's bins: smaller distances share bin 0, larger ones the last.
struct RowBins {
  RowScale scale;
  int first;  // upper_bits() of bin 0's distances

  // 0 for the most likely tokens.
  __device__ __forceinline__ int of(float exponent) const {
    return min(max(upper_bits(fabsf(exponent)) - first, 0), kBins - 1);
  }
};

// All lanes of a warp call it. The typical distance is that of the mean weight.
__device__ RowBins bins_of(const FilterArguments& a, std::int64_t r) {
  const RowSegment* parts = a.parts + r * a.segments;
  const RowScale scale = {segments_maximum(parts, a.segments), a.inverse_temperature};
  float sum = 0;
  for (int s = threadIdx.x % kWarp; s < a.segments; s += kWarp)
    sum += parts[s].tempered * __expf(scale.exponent(parts[s].maximum));
  const float typical = -__logf(lane_sum(sum) / static_cast<float>(a.vocabulary));
  return {scale, max(0, upper_bits(fmaxf(typical, 0.0f)) - kBins / 2)};
}

// Where a row's cut is: tokens in bins below `first` are kept, those above `last` are not, the
// others are listed.
struct CutBins {
  RowBins bins;
  float log_raw;
  int first, last;
  unsigned above_count;    // of the tokens in bins below `first`
  unsigned listed;         // tokens in the bins from first to last
  std::int32_t use_radix;  // too many of them
  bool finite;
  Mass above_mass;
  Mass target;  // top-p without top-k: the mass to be kept
};

struct FilterMemory {
  Mass* mass;               // [rows, kBins]
  unsigned* count;          // [rows, kBins]
  Mass* kept;               // [rows, segments]: in bins below CutBins::first
  Mass* list;               // [rows, kListed]: place_of() of each token
  CutBins* cuts;            // [rows]
  std::int32_t* use_radix;  // [rows]
};

// Larger for tokens that come first in the order.
__device__ __forceinline__ Mass place_of(float z, int id) {
  return Mass{key_of(z)} << 32 | (0xffffffffu - static_cast<unsigned>(id));
}
__device__ __forceinline__ int id_of(Mass place) {
  return static_cast<int>(0xffffffffu - static_cast<unsigned>(place));
}

// Four neighbouring logits; -inf past the end.
__device__ __forceinline__ float4 load_four(const float* row, int at, int end, bool aligned) {
  if (aligned && at + 4 <= end) return *reinterpret_cast<const float4*>(row + at);
  const auto one = [&](int i) { return at + i < end ? row[at + i] : -INFINITY; };
  return {one(0), one(1), one(2), one(3)};
}

struct BinSums {
  unsigned low[kBins], high[kBins];  // of the mass; 64-bit atomics in shared memory are slow
  unsigned count[kBins];

  __device__ void add(int bin, Mass mass) {
    const auto words = static_cast<unsigned>(mass);
    const unsigned carry = atomicAdd(&low[bin], words) + words < words ? 1 : 0;
    const unsigned upper = static_cast<unsigned>(mass >> 32) + carry;
    if (upper > 0) atomicAdd(&high[bin], upper);
  }
};

template <bool kByCount>
__global__ void __launch_bounds__(kHistogramThreads)
    histogram_kernel(FilterArguments a, FilterMemory memory, int chunk) {
  __shared__ BinSums sums;
  for (int i = threadIdx.x; i < kBins; i += kHistogramThreads)
    sums.low[i] = sums.high[i] = sums.count[i] = 0;
  const std::int64_t r = blockIdx.y;
  const RowBins bins = bins_of(a, r);
  const float* row = a.logits + r * a.stride;
  const bool aligned = reinterpret_cast<std::uintptr_t>(row) % 16 == 0;
  const int begin = blockIdx.x * chunk, end = min(a.vocabulary, begin + chunk);
  __syncthreads();
#pragma unroll 2
  for (int at = begin + static_cast<int>(threadIdx.x) * 4; at < end; at += kHistogramThreads * 4) {
    const float4 four = load_four(row, at, end, aligned);
    const float z[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (at + i >= end) continue;
      const float exponent = bins.scale.exponent(z[i]);
      if (!kByCount && exponent < kLeastExponent) continue;
      const int bin = bins.of(exponent);
      if (kByCount) atomicAdd(&sums.count[bin], 1u);
      const Mass mass = mass_of(__expf(exponent));
      if (mass > 0) sums.add(bin, mass);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kBins; i += kHistogramThreads) {
    const Mass mass = Mass{sums.high[i]} << 32 | sums.low[i];
    if (mass > 0) atomicAdd(&memory.mass[r * kBins + i], mass);
    if (kByCount && sums.count[i] > 0) atomicAdd(&memory.count[r * kBins + i], sums.count[i]);
  }
}

// A bin and what lies in the bins before it.
struct BinPlace {
  int bin;
  Mass before;
};

// The first bin with which the sum over bins reaches `target`; the last one if none does.
template <typename Number>
__device__ BinPlace find_bin(const Number* bins, Mass target, Mass* shared, BinPlace* found) {
  Mass own[kBinsPerThread], sum = 0;
#pragma unroll
  for (int i = 0; i < kBinsPerThread; ++i)
    sum += own[i] = bins[threadIdx.x * kBinsPerThread + i];
  const BlockScan scan = block_scan(sum, shared);
  const bool is_last = threadIdx.x == kFindThreads - 1;
  if (scan.before < target && (scan.before + sum >= target || is_last)) {
    Mass before = scan.before;
    int i = 0;
    for (; i + 1 < kBinsPerThread && before + own[i] < target; ++i)
      before += own[i];
    *found = {static_cast<int>(threadIdx.x) * kBinsPerThread + i, before};
  }
  __syncthreads();
  const BinPlace place = *found;
  __syncthreads();
  return place;
}

// The mass that top-p keeps of `all`.
__device__ __forceinline__ Mass kept_target(double top_p, Mass all) {
  return max(Mass{1}, static_cast<Mass>(ceil(top_p * static_cast<double>(all))));
}

__device__ Mass bins_total(const Mass* bins, Mass* shared) {
  Mass sum = 0;
#pragma unroll
  for (int i = 0; i < kBinsPerThread; ++i)
    sum += bins[threadIdx.x * kBinsPerThread + i];
  return block_scan(sum, shared).total;
}

__global__ void __launch_bounds__(kFindThreads)
    find_kernel(FilterArguments a, FilterMemory memory, bool by_count, bool by_mass) {
  __shared__ Mass shared[kFindThreads / kWarp];
  __shared__ BinPlace found;
  __shared__ RowTotals totals;
  const std::int64_t r = blockIdx.x;
  if (threadIdx.x < kWarp) {
    const RowTotals found_totals =
        warp_row_totals(a.parts + r * a.segments, a.segments, a.inverse_temperature);
    if (threadIdx.x == 0) totals = found_totals;
  }
  __syncthreads();
  CutBins cut = {bins_of(a, r), totals.log_raw, kBins, -1, 0, 0, 0, totals.finite(), 0, 0};
  if (cut.finite && by_count) {
    const BinPlace place =
        find_bin(memory.count + r * kBins, static_cast<Mass>(a.rule.top_k), shared, &found);
    cut.last = place.bin;
    cut.above_count = static_cast<unsigned>(place.before);
    // The mass of top-k's tokens is known when they are sorted, and top-p's cut may be anywhere
    // among them: then all of them are listed.
    cut.first = by_mass ? 0 : place.bin;
    if (by_mass) cut.above_count = 0;
  } else if (cut.finite && by_mass) {
    const Mass* bins = memory.mass + r * kBins;
    cut.target = kept_target(a.rule.top_p, bins_total(bins, shared));
    const BinPlace place = find_bin(bins, cut.target, shared, &found);
    cut.first = cut.last = place.bin;
    cut.above_mass = place.before;
  }
  if (threadIdx.x != 0) return;
  memory.cuts[r] = cut;
  memory.use_radix[r] = 0;
}

__global__ void __launch_bounds__(kCollectThreads)
    collect_kernel(FilterArguments a, FilterMemory memory) {
  __shared__ Mass shared[kCollectThreads / kWarp];
  __shared__ unsigned short listed[kSegment];  // ids, from the segment's first
  __shared__ unsigned listed_count, listed_at;
  const std::int64_t r = blockIdx.y;
  CutBins& cut = memory.cuts[r];
  if (!cut.finite) return;
  if (threadIdx.x == 0) listed_count = 0;
  __syncthreads();
  const RowBins bins = cut.bins;
  const int first = cut.first, last = cut.last;
  const double least = a.rule.min_p;
  const float* row = a.logits + r * a.stride;
  const bool aligned = reinterpret_cast<std::uintptr_t>(row) % 16 == 0;
  const int begin = blockIdx.x * kSegment;
  Mass mine = 0;
#pragma unroll
  for (int i = 0; i < kSegment; i += kCollectThreads * 4) {
    const int at = begin + i + static_cast<int>(threadIdx.x) * 4;
    const float4 four = load_four(row, at, a.vocabulary, aligned);
    const float z[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float exponent = bins.scale.exponent(z[j]);
      const int bin = bins.of(exponent);
      if (at + j >= a.vocabulary || (bin >= first && bin > last)) continue;
      if (bin >= first) {
        listed[atomicAdd(&listed_count, 1u)] = static_cast<unsigned short>(at + j - begin);
      } else if (const float weight = __expf(exponent); weight >= least) {
        mine += mass_of(weight);
      }
    }
  }
  const Mass kept = block_scan(mine, shared).total;
  const unsigned count = listed_count;
  if (threadIdx.x == 0) {
    memory.kept[r * a.segments + blockIdx.x] = kept;
    if (count > 0) listed_at = atomicAdd(&cut.listed, count);
  }
  __syncthreads();
  Mass* list = memory.list + r * kListed;
  for (unsigned i = threadIdx.x; i < count && listed_at + i < kListed; i += kCollectThreads) {
    const int id = begin + listed[i];
    list[listed_at + i] = place_of(row[id], id);
  }
}

// Bitonic, descending; `size` is a power of two. Steps below 32 stay within a warp's 64 places.
__device__ void sort_places(Mass* places, int size) {
  __syncthreads();
  for (int run = 2; run <= size; run *= 2) {
    for (int step = run / 2; step > 0; step /= 2) {
      if (step >= kWarp) {
        __syncthreads();
      } else {
        __syncwarp();
      }
      for (int i = threadIdx.x; i < size / 2; i += kDrawThreads) {
        const int within = i & (step - 1), low = (i - within) * 2 + within, high = low + step;
        const Mass a = places[low], b = places[high];
        const bool descending = (low & run) == 0;
        if ((a < b) == descending) {
          places[low] = b;
          places[high] = a;
        }
      }
    }
  }
  __syncthreads();
}

struct DrawMemory {
  Mass places[kListed];
  Mass warps[kDrawThreads / kWarp];
  Mass all;     // of the tokens that top-k keeps
  int kept;     // listed tokens that are kept
  int segment;  // that contains the draw
  Mass before;  // kept mass of the segments before it
  Mass target;  // the draw
  Mass total;   // kept mass
};

// How many of the sorted listed tokens are kept.
__device__ int kept_places(const FilterArguments& a, const CutBins& cut, const RowScale& scale,
                           int listed, int size, DrawMemory& m) {
  constexpr int kMost = kListed / kDrawThreads;
  const bool by_count = a.rule.top_k > 0 && a.rule.top_k < a.vocabulary;
  int limit = listed;
  if (by_count) limit = min(limit, static_cast<int>(a.rule.top_k - cut.above_count));
  if (!(a.rule.top_p < 1)) return limit;
  const int each = max(1, size / kDrawThreads), first = static_cast<int>(threadIdx.x) * each;
  Mass own[kMost] = {}, sum = 0;
  for (int i = 0; i < each; ++i) {
    if (first + i >= limit) break;
    const float z = logit_of(static_cast<unsigned>(m.places[first + i] >> 32));
    sum += own[i] = mass_of(__expf(scale.exponent(z)));
  }
  const BlockScan scan = block_scan(sum, m.warps);
  const Mass target =
      by_count ? kept_target(a.rule.top_p, scan.total) : cut.target - cut.above_mass;
  if (threadIdx.x == 0) m.kept = limit;
  __syncthreads();
  if (scan.before < target && scan.before + sum >= target) {
    Mass through = scan.before;
    for (int i = 0; i < each; ++i) {
      through += own[i];
      if (through < target) continue;
      m.kept = first + i + 1;
      break;
    }
  }
  __syncthreads();
  return m.kept;
}

__global__ void __launch_bounds__(kDrawThreads)
    filtered_draw_kernel(FilterArguments a, FilterMemory memory) {
  extern __shared__ Mass kept_mass[];  // [segments]
  __shared__ DrawMemory m;
  const std::int64_t r = blockIdx.x;
  const CutBins cut = memory.cuts[r];
  if (!cut.finite) {
    if (threadIdx.x == 0) {
      a.ids[r] = 0;
      a.logp[r] = a.raw_logp[r] = NAN;
    }
    return;
  }
  if (cut.listed > kListed) {
    if (threadIdx.x == 0) memory.use_radix[r] = 1;
    return;
  }
  const RowScale scale = cut.bins.scale;
  const double least = a.rule.min_p;
  const int listed = static_cast<int>(cut.listed);
  int size = 1;
  while (size < listed)
    size *= 2;
  for (int i = threadIdx.x; i < size; i += kDrawThreads)
    m.places[i] = i < listed ? memory.list[r * kListed + i] : 0;
  for (int s = threadIdx.x; s < a.segments; s += kDrawThreads)
    kept_mass[s] = memory.kept[r * a.segments + s];
  sort_places(m.places, size);
  const int kept = listed > 0 ? kept_places(a, cut, scale, listed, size, m) : 0;
  for (int i = threadIdx.x; i < kept; i += kDrawThreads) {
    const float weight = __expf(scale.exponent(logit_of(static_cast<unsigned>(m.places[i] >> 32))));
    if (weight >= least) atomicAdd(&kept_mass[id_of(m.places[i]) / kSegment], mass_of(weight));
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    m.total = 0;
    for (int s = 0; s < a.segments; ++s)
      m.total += kept_mass[s];
    // Masses are integers: the draw selects the id whose range [before, before + mass) contains it.
    m.target = min(static_cast<Mass>(a.noise[r] * static_cast<double>(m.total)), m.total - 1);
    m.before = 0;
    m.segment = 0;
    while (m.target >= m.before + kept_mass[m.segment])
      m.before += kept_mass[m.segment++];
  }
  __syncthreads();
  const Mass last_place = kept > 0 ? m.places[kept - 1] : 0;
  const float* row = a.logits + r * a.stride;
  constexpr int kEach = kSegment / kDrawThreads;
  const int at = m.segment * kSegment + static_cast<int>(threadIdx.x) * kEach;
  float exponents[kEach];
  Mass masses[kEach], sum = 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    masses[i] = 0;
    if (at + i >= a.vocabulary) continue;
    const float z = row[at + i];
    exponents[i] = scale.exponent(z);
    const int bin = cut.bins.of(exponents[i]);
    const bool is_kept =
        bin < cut.first || (bin <= cut.last && kept > 0 && place_of(z, at + i) >= last_place);
    const float weight = __expf(exponents[i]);
    if (is_kept && weight >= least) masses[i] = mass_of(weight);
    sum += masses[i];
  }
  Mass before = m.before + block_scan(sum, m.warps).before;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    if (m.target >= before && m.target < before + masses[i]) {
      a.ids[r] = at + i;
      a.logp[r] = exponents[i] - static_cast<float>(log(static_cast<double>(m.total) / kMassOne));
      a.raw_logp[r] = row[at + i] - scale.maximum - cut.log_raw;
    }
    before += masses[i];
  }
}

// The arrays of `rows` rows from `begin` on; returns the end.
char* lay_out(char* begin, std::int64_t rows, std::int64_t segments, FilterMemory& memory) {
  const auto take = [&](auto*& array, std::int64_t count) {
    array = reinterpret_cast<std::remove_reference_t<decltype(array)>>(begin);
    begin += ceil_div(count * static_cast<std::int64_t>(sizeof(*array)), 16) * 16;
  };
  take(memory.mass, rows * kBins);
  take(memory.count, rows * kBins);
  take(memory.kept, rows * segments);
  take(memory.list, rows * kListed);
  take(memory.cuts, rows);
  take(memory.use_radix, rows);
  return begin;
}

}  // namespace

std::int64_t filter_workspace(std::int64_t rows, std::int64_t vocabulary) {
  FilterMemory memory;
  return lay_out(nullptr, rows, ceil_div(vocabulary, kSegment), memory) -
         static_cast<char*>(nullptr);
}

void launch_filtered_draw(const FilterArguments& a, void* workspace, cudaStream_t stream) {
  FilterMemory memory;
  lay_out(static_cast<char*>(workspace), a.rows, a.segments, memory);
  const auto rows = static_cast<unsigned>(a.rows);
  const bool by_count = a.rule.top_k > 0 && a.rule.top_k < a.vocabulary, by_mass = a.rule.top_p < 1;
  if (by_count || by_mass) {
    cudaMemsetAsync(memory.mass, 0, a.rows * kBins * (sizeof(Mass) + sizeof(unsigned)), stream);
    // Enough blocks for every multiprocessor, each with a run of some length.
    constexpr std::int64_t kBlocks = 512;
    const std::int64_t chunks = std::clamp<std::int64_t>(kBlocks / a.rows, 1, a.segments);
    const auto chunk = static_cast<int>(ceil_div(ceil_div(a.vocabulary, chunks), 4) * 4);
    const dim3 grid(static_cast<unsigned>(chunks), rows);
    const auto kernel = by_count ? histogram_kernel<true> : histogram_kernel<false>;
    kernel<<<grid, kHistogramThreads, 0, stream>>>(a, memory, chunk);
  }
  find_kernel<<<rows, kFindThreads, 0, stream>>>(a, memory, by_count, by_mass);
  collect_kernel<<<dim3(a.segments, rows), kCollectThreads, 0, stream>>>(a, memory);
  filtered_draw_kernel<<<rows, kDrawThreads, a.segments * sizeof(Mass), stream>>>(a, memory);
  launch_radix_draw(a, memory.use_radix, stream);
}

}  // namespace antisd::inline ops
