// Sampling from logits. The first kernel reads every logit once and stores, for each segment of a
// row, its maximum and sums; the second reads one segment of a row again, the one that contains the
// draw. Filters read the whole row twice more, in kernels of their own (sampling_filter.cu).
#include "ops/kernels/launch.h"
#include "ops/kernels/sampling_row.cuh"

namespace antisd::inline ops {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarp;
constexpr int kPerThread = 16;
static_assert(kSegment == kThreads * kPerThread);

struct Arguments {
  const float* logits;
  std::int64_t stride;
  int vocabulary, segments;
  float inverse_temperature;
  bool greedy;
  const double* noise;
  RowSegment* parts;  // [rows, segments]
  std::int32_t* ids;
  float *logp, *raw_logp;
};

// 16 consecutive logits; -inf past the end. Rows need not be aligned.
__device__ void load_run(const float* row, int begin, int vocabulary, float (&z)[kPerThread]) {
  if (begin + kPerThread <= vocabulary && reinterpret_cast<std::uintptr_t>(row) % 16 == 0) {
#pragma unroll
    for (int i = 0; i < kPerThread; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(row + begin + i);
      z[i] = four.x;
      z[i + 1] = four.y;
      z[i + 2] = four.z;
      z[i + 3] = four.w;
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kPerThread; ++i)
    z[i] = begin + i < vocabulary ? row[begin + i] : -INFINITY;
}

__global__ void __launch_bounds__(kThreads) segment_kernel(Arguments a) {
  __shared__ float shared[4][kWarps];
  __shared__ int shared_id[kWarps];
  const float* row = a.logits + blockIdx.y * a.stride;
  const int begin = blockIdx.x * kSegment;
  // Neighbouring threads read neighbouring groups of four.
  float z[kPerThread];
  const bool aligned = reinterpret_cast<std::uintptr_t>(row) % 16 == 0;
  float maximum = -INFINITY;
#pragma unroll
  for (int i = 0; i < kPerThread; i += 4) {
    const int at = begin + i * kThreads + threadIdx.x * 4;
    if (aligned && at + 4 <= a.vocabulary) {
      const float4 four = *reinterpret_cast<const float4*>(row + at);
      z[i] = four.x;
      z[i + 1] = four.y;
      z[i + 2] = four.z;
      z[i + 3] = four.w;
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j)
        z[i + j] = at + j < a.vocabulary ? row[at + j] : -INFINITY;
    }
  }
#pragma unroll
  for (int i = 0; i < kPerThread; ++i)
    maximum = fmaxf(maximum, z[i]);
  maximum = block_max(maximum, shared[0]);
  float raw = 0, tempered = 0;
  int first = INT32_MAX;
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int at = begin + (i / 4 * 4) * kThreads + threadIdx.x * 4 + i % 4;
    if (at >= a.vocabulary) continue;
    raw += __expf(z[i] - maximum);
    tempered += __expf((z[i] - maximum) * a.inverse_temperature);
    if (z[i] == maximum) first = min(first, at);
  }
  raw = block_sum(raw, shared[1]);
  tempered = block_sum(tempered, shared[2]);
  if (a.greedy) {
    first = __reduce_min_sync(kAllLanes, first);
    if (threadIdx.x % kWarp == 0) shared_id[threadIdx.x / kWarp] = first;
    __syncthreads();
    for (int w = 0; w < kWarps; ++w)
      first = min(first, shared_id[w]);
  }
  if (threadIdx.x == 0)
    a.parts[std::int64_t{blockIdx.y} * a.segments + blockIdx.x] = {maximum, raw, tempered, first};
}

struct Choice {
  double before;  // probability mass of the segments before the chosen one
  double target, total;
  float maximum, log_raw;
  int segment;
};

// Runs in a warp of the block that draws a row; every lane gets it.
__device__ Choice choose_segment(const Arguments& a, const RowSegment* parts, double noise) {
  const RowTotals totals = warp_row_totals(parts, a.segments, a.inverse_temperature);
  Choice choice = {0, noise * totals.tempered, totals.tempered, totals.maximum, totals.log_raw, 0};
  double mass = 0;
  for (; choice.segment + 1 < a.segments; ++choice.segment) {
    const int own = choice.segment + static_cast<int>(threadIdx.x) % kWarp;
    if (choice.segment % kWarp == 0)
      mass = own < a.segments ? segment_mass(parts[own], totals.maximum, a.inverse_temperature) : 0;
    const double here = __shfl_sync(kAllLanes, mass, choice.segment % kWarp);
    if (choice.before + here > choice.target) break;
    choice.before += here;
  }
  return choice;
}

__global__ void __launch_bounds__(kThreads) draw_kernel(Arguments a) {
  __shared__ Choice choice;
  __shared__ double warp_sums[kWarps];
  const std::int64_t row_index = blockIdx.x;
  const float* row = a.logits + row_index * a.stride;
  const RowSegment* parts = a.parts + row_index * a.segments;
  if (threadIdx.x < kWarp) {
    const Choice chosen = choose_segment(a, parts, a.noise[row_index]);
    if (threadIdx.x == 0) choice = chosen;
  }
  __syncthreads();
  const int begin = choice.segment * kSegment + threadIdx.x * kPerThread;
  float weights[kPerThread];
  load_run(row, begin, a.vocabulary, weights);
  double sum = 0;
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    weights[i] = __expf((weights[i] - choice.maximum) * a.inverse_temperature);
    sum += weights[i];
  }
  double before = sum;  // scan over threads
#pragma unroll
  for (int offset = 1; offset < kWarp; offset *= 2) {
    const double other = __shfl_up_sync(kAllLanes, before, offset);
    if (threadIdx.x % kWarp >= offset) before += other;
  }
  if (threadIdx.x % kWarp == kWarp - 1) warp_sums[threadIdx.x / kWarp] = before;
  __syncthreads();
  before += choice.before - sum;
  for (int w = 0; w < static_cast<int>(threadIdx.x) / kWarp; ++w)
    before += warp_sums[w];
  // The first id whose cumulative mass exceeds the target; if rounding leaves none, the segment's
  // last possible one.
  int last = -1, crossing = -1;
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    if (!(weights[i] > 0)) continue;
    last = begin + i;
    before += weights[i];
    if (crossing < 0 && before > choice.target) crossing = last;
  }
  const int first_crossing = __reduce_min_sync(kAllLanes, crossing < 0 ? INT32_MAX : crossing);
  const int last_possible = __reduce_max_sync(kAllLanes, last);
  __shared__ int crossings[kWarps], lasts[kWarps];
  if (threadIdx.x % kWarp == 0) {
    crossings[threadIdx.x / kWarp] = first_crossing;
    lasts[threadIdx.x / kWarp] = last_possible;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  int id = INT32_MAX, fallback = -1;
  for (int w = 0; w < kWarps; ++w) {
    id = min(id, crossings[w]);
    fallback = max(fallback, lasts[w]);
  }
  if (id == INT32_MAX) id = max(fallback, 0);
  const bool finite = isfinite(choice.maximum) && isfinite(choice.total);
  const float z = row[id] - choice.maximum;
  a.ids[row_index] = finite ? id : 0;
  a.logp[row_index] =
      finite ? z * a.inverse_temperature - static_cast<float>(log(choice.total)) : NAN;
  a.raw_logp[row_index] = finite ? z - choice.log_raw : NAN;
}

__global__ void greedy_kernel(Arguments a, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const RowSegment* parts = a.parts + std::int64_t{row} * a.segments;
  const RowTotals totals = row_totals(parts, a.segments, 1);
  int id = 0;
  for (int s = 0; s < a.segments; ++s) {
    if (parts[s].maximum == totals.maximum) {
      id = parts[s].first_of_maximum;
      break;
    }
  }
  const bool finite = isfinite(totals.maximum) && isfinite(totals.log_raw);
  a.ids[row] = finite ? id : 0;
  a.logp[row] = finite ? 0.0f : NAN;
  a.raw_logp[row] = finite ? -totals.log_raw : NAN;
}

bool is_filtered(const SamplingRule& rule, std::int64_t vocabulary) {
  return rule.temperature > 0 &&
         (rule.top_p < 1 || rule.min_p > 0 || (rule.top_k > 0 && rule.top_k < vocabulary));
}

// A multiple of 16.
std::int64_t segments_bytes(std::int64_t rows, std::int64_t vocabulary) {
  return rows * ceil_div(vocabulary, kSegment) * static_cast<std::int64_t>(sizeof(RowSegment));
}

}  // namespace

std::int64_t sampling_workspace(std::int64_t rows, std::int64_t vocabulary,
                                const SamplingRule& rule) {
  return segments_bytes(rows, vocabulary) +
         (is_filtered(rule, vocabulary) ? filter_workspace(rows, vocabulary) : 0);
}

void launch_sample(const float* logits, std::int64_t rows, std::int64_t stride,
                   std::int64_t vocabulary, const SamplingRule& rule, const double* noise,
                   std::int32_t* ids, float* logp, float* raw_logp, void* workspace,
                   cudaStream_t stream) {
  if (rows == 0) return;
  const bool greedy = rule.temperature == 0;
  const int segments = static_cast<int>(ceil_div(vocabulary, kSegment));
  const Arguments arguments = {logits,
                               stride,
                               static_cast<int>(vocabulary),
                               segments,
                               greedy ? 1.0f : static_cast<float>(1 / rule.temperature),
                               greedy,
                               noise,
                               static_cast<RowSegment*>(workspace),
                               ids,
                               logp,
                               raw_logp};
  segment_kernel<<<dim3(segments, static_cast<unsigned>(rows)), kThreads, 0, stream>>>(arguments);
  if (greedy) {
    greedy_kernel<<<grid_for(rows, kThreads), kThreads, 0, stream>>>(arguments,
                                                                     static_cast<int>(rows));
  } else if (is_filtered(rule, vocabulary)) {
    launch_filtered_draw(
        {logits, rows, stride, static_cast<int>(vocabulary), segments,
         arguments.inverse_temperature, rule, noise, arguments.parts, ids, logp, raw_logp},
        static_cast<char*>(workspace) + segments_bytes(rows, vocabulary), stream);
  } else {
    draw_kernel<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(arguments);
  }
  check_launch("sample");
}

}  // namespace antisd::inline ops
