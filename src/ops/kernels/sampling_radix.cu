// Top-k, top-p and min-p of any row: the place where the order "larger logit, then lower id" is cut
// is found by radix selection on the logits' bits, in three rounds of histograms.
#include "ops/kernels/launch.h"
#include "ops/kernels/sampling_row.cuh"

namespace antisd::inline ops {
namespace {

constexpr int kRadixThreads = 1024, kRadixWarps = kRadixThreads / kWarp;
constexpr int kRadixBins = 2048;
constexpr int kRounds = 3;

// The bits of a key that a round uses: 11, 11, 10, from the top.
__device__ __forceinline__ int shift_of(int round) {
  return round == 0 ? 21 : round == 1 ? 10 : 0;
}
__device__ __forceinline__ int bits_of(int round) {
  return round == 2 ? 10 : 11;
}

struct Row {
  const float* z;
  int n;
  RowScale scale;

  __device__ float weight(int id) const { return __expf(scale.exponent(z[id])); }
  __device__ Mass mass(int id) const { return mass_of(weight(id)); }
};

// Keeps keys above `key`, and the first `ties` ids with that key.
struct Cut {
  unsigned key;
  unsigned ties;
  Mass mass;  // of all kept tokens
};

struct Shared {
  unsigned count[kRadixBins];
  Mass mass[kRadixBins];
  // The result of a round of selection: the bin, and the count and mass above it.
  unsigned bin, above_count;
  Mass above_mass;
  Cut cut;
};

// The smallest cut that keeps `count` tokens, or (by_mass) a mass of at least `target`.
__device__ Cut select(const Row& row, Shared& s, bool by_mass, unsigned count, Mass target) {
  unsigned prefix = 0, above_count = 0;
  Mass above_mass = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = threadIdx.x; i < kRadixBins; i += kRadixThreads) {
      s.count[i] = 0;
      s.mass[i] = 0;
    }
    __syncthreads();
    const int shift = shift_of(round), bits = bits_of(round), width = shift + bits;
    for (int id = threadIdx.x; id < row.n; id += kRadixThreads) {
      const unsigned key = key_of(row.z[id]);
      if (width < 32 && key >> width != prefix >> width) continue;
      const unsigned bin = key >> shift & ((1u << bits) - 1);
      atomicAdd(&s.count[bin], 1u);
      const Mass mass = row.mass(id);
      if (mass > 0) atomicAdd(&s.mass[bin], mass);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int bin = (1 << bits) - 1;
      for (; bin > 0; --bin) {
        const bool reached =
            by_mass ? above_mass + s.mass[bin] >= target : above_count + s.count[bin] >= count;
        if (reached) break;
        above_count += s.count[bin];
        above_mass += s.mass[bin];
      }
      s.bin = bin;
      s.above_count = above_count;
      s.above_mass = above_mass;
    }
    __syncthreads();
    prefix |= s.bin << shift;
    above_count = s.above_count;
    above_mass = s.above_mass;
    if (round + 1 == kRounds && threadIdx.x == 0) {
      const unsigned equal = s.count[s.bin];
      const Mass each = equal > 0 ? s.mass[s.bin] / equal : 0;  // equal keys have equal masses
      unsigned ties = count - above_count;
      if (by_mass)
        ties = each == 0 ? 1 : static_cast<unsigned>((target - above_mass + each - 1) / each);
      ties = max(1u, min(ties, equal));
      s.cut = {prefix, ties, above_mass + ties * each};
    }
    __syncthreads();
  }
  const Cut cut = s.cut;
  __syncthreads();
  return cut;
}

// A warp's run of ids; its lanes take neighbouring ids.
struct WarpRun {
  int begin, end;
};

__device__ __forceinline__ WarpRun warp_run(int n) {
  const int length = (n + kRadixWarps - 1) / kRadixWarps, warp = threadIdx.x / kWarp;
  return {min(n, warp * length), min(n, (warp + 1) * length)};
}

// The mass of the lane's id if it is kept; `equal_before` counts ids equal to the cut so far.
__device__ Mass kept_mass(const Row& row, const Cut& cut, double least, int id, int end,
                          unsigned& equal_before) {
  const unsigned key = id < end ? key_of(row.z[id]) : 0;
  const bool equal = id < end && key == cut.key;
  const unsigned equals = __ballot_sync(kAllLanes, equal);
  const unsigned rank = equal_before + __popc(equals & ((1u << threadIdx.x % kWarp) - 1));
  equal_before += __popc(equals);
  const bool kept = id < end && (key > cut.key || (equal && rank < cut.ties));
  if (!kept) return 0;
  if (row.weight(id) < least) return 0;
  return row.mass(id);
}

__global__ void __launch_bounds__(kRadixThreads)
    radix_draw_kernel(FilterArguments a, const std::int32_t* flags) {
  __shared__ Shared shared;
  __shared__ Mass warp_mass[kRadixWarps];
  __shared__ unsigned warp_equal[kRadixWarps];
  __shared__ RowTotals totals;
  const std::int64_t r = blockIdx.x;
  if (flags[r] == 0) return;
  if (threadIdx.x == 0)
    totals = row_totals(a.parts + r * a.segments, a.segments, a.inverse_temperature);
  __syncthreads();
  const Row row = {a.logits + r * a.stride, a.vocabulary, {totals.maximum, a.inverse_temperature}};
  Cut cut = {0, static_cast<unsigned>(row.n), 0};
  const bool has_k = a.rule.top_k > 0 && a.rule.top_k < row.n;
  if (has_k) cut = select(row, shared, false, static_cast<unsigned>(a.rule.top_k), 0);
  if (a.rule.top_p < 1) {
    Mass all = cut.mass;
    if (!has_k) {
      Mass mine = 0;
      for (int id = threadIdx.x; id < row.n; id += kRadixThreads)
        mine += row.mass(id);
      mine = warp_total(mine);
      if (threadIdx.x % kWarp == 0) warp_mass[threadIdx.x / kWarp] = mine;
      __syncthreads();
      for (int w = 0; w < kRadixWarps; ++w)
        all += warp_mass[w];
      __syncthreads();
    }
    const Mass target =
        max(Mass{1}, static_cast<Mass>(ceil(a.rule.top_p * static_cast<double>(all))));
    const Cut by_mass = select(row, shared, true, 0, target);
    // Rounding may put the mass's cut after the count's.
    if (by_mass.key > cut.key || (by_mass.key == cut.key && by_mass.ties < cut.ties)) cut = by_mass;
  }
  const WarpRun run = warp_run(row.n);
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  unsigned equal = 0;
  for (int at = run.begin; at < run.end; at += kWarp)
    equal += at + lane < run.end && key_of(row.z[at + lane]) == cut.key;
  equal = __reduce_add_sync(kAllLanes, equal);
  if (lane == 0) warp_equal[warp] = equal;
  __syncthreads();
  unsigned first_equal = 0;
  for (int w = 0; w < warp; ++w)
    first_equal += warp_equal[w];
  Mass mine = 0;
  unsigned equal_before = first_equal;
  for (int at = run.begin; at < run.end; at += kWarp)
    mine += kept_mass(row, cut, a.rule.min_p, at + lane, run.end, equal_before);
  mine = warp_total(mine);
  if (lane == 0) warp_mass[warp] = mine;
  __syncthreads();
  Mass total = 0, before = 0;
  for (int w = 0; w < kRadixWarps; ++w) {
    if (w < warp) before += warp_mass[w];
    total += warp_mass[w];
  }
  // Masses are integers: the draw selects the id whose range [before, before + mass) contains it.
  const Mass target = min(static_cast<Mass>(a.noise[r] * static_cast<double>(total)), total - 1);
  if (target < before || target >= before + warp_mass[warp]) return;
  equal_before = first_equal;
  for (int at = run.begin; at < run.end; at += kWarp) {
    const Mass mass = kept_mass(row, cut, a.rule.min_p, at + lane, run.end, equal_before);
    const Mass through = warp_through(mass);
    if (mass > 0 && target >= before + through - mass && target < before + through) {
      const int id = at + lane;
      a.ids[r] = id;
      a.logp[r] = row.scale.exponent(row.z[id]) -
                  static_cast<float>(log(static_cast<double>(total) / kMassOne));
      a.raw_logp[r] = row.z[id] - totals.maximum - totals.log_raw;
    }
    before += __shfl_sync(kAllLanes, through, kWarp - 1);
    if (before > target) return;
  }
}

}  // namespace

void launch_radix_draw(const FilterArguments& arguments, const std::int32_t* flags,
                       cudaStream_t stream) {
  radix_draw_kernel<<<static_cast<unsigned>(arguments.rows), kRadixThreads, 0, stream>>>(arguments,
                                                                                         flags);
}

}  // namespace antisd::inline ops
