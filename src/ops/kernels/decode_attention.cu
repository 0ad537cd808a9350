// Attention of one new token a sequence, bound by reading keys and values once. The tiles of 16
// keys of all sequences and key heads lie on one line, which is cut into as many equal pieces as
// blocks run at a time: all end together, however lengths differ. A block of four warps walks its
// piece, one sequence and key head (with its group of query heads) after the other; each warp takes
// every fourth tile. What lies in the pieces of several blocks is put together by the last of them.
// Products run on tensor cores with keys (then values) as
// the 16-row operand and the query heads as its 8 columns:
//
//   scores[key, head]  = sum over dim of  K[key, dim] q[dim, head]
//   out[dim, head]    += sum over key of  V[key, dim] p[key, head]
//
// A lane (group g = lane / 4, t = lane % 4) reads 16 bytes at a time. Which dims meet in one tensor
// operation does not matter as long as both operands agree, so packs go in as they lie in memory.
#include "ops/kernels/decode_attention.h"
#include "ops/kernels/decode_attention_plain.h"
#include "ops/kernels/launch.h"
#include "ops/kernels/mma.cuh"
#include "ops/kernels/pack.cuh"
#include "ops/kernels/reduce.cuh"

namespace antisd::inline ops {
namespace {

constexpr int kWarps = 4, kThreads = kWarps * kWarp;
constexpr int kTile = 16;          // keys of a tensor operation
constexpr int kColumns = 8;        // query heads of a tensor operation
constexpr int kBlocksAtATime = 3;  // of a multiprocessor

template <typename T>
struct Arguments {
  DecodeAttentionShape shape;
  const T *q, *keys, *values;
  const std::int32_t *pages, *lengths;
  float scale_log2;  // scores go through exp2
  T* out;
  float* partials;  // two for each block: head_dim sums, maximum and sum of weights a query head
  std::int32_t* counters;
};

__device__ __forceinline__ unsigned transpose_8x8(unsigned x) {
  unsigned y;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
  return y;
}

__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

template <typename T>
__device__ __forceinline__ void store_rounded(T* p, float x) {
  const float value[1] = {x};
  store_pack(p, make_pack<T>(value));
}

template <int I>
__device__ __forceinline__ unsigned word_of(const uint4& v) {
  if constexpr (I == 0) return v.x;
  if constexpr (I == 1) return v.y;
  if constexpr (I == 2) return v.z;
  return v.w;
}

// Keys [first, length) of a sequence are read; `first` is the window's begin rounded down to a
// tile.
__device__ __forceinline__ int first_key(int length, int window) {
  return window > 0 && length > window ? (length - window) / kTile * kTile : 0;
}

// The line of tiles. A sequence has `tiles` of them for each of its units (a key head with at most
// kColumns of its query heads); ends[i]: tiles of sequences 0..i times units.
struct Line {
  const int* ends;
  int sequences, blocks;
  std::int64_t length;

  __device__ std::int64_t begin_of_block(int block) const { return length * block / blocks; }
  __device__ int block_of(std::int64_t place) const {
    int block = static_cast<int>(place * blocks / length);
    while (begin_of_block(block + 1) <= place)
      ++block;
    while (begin_of_block(block) > place)
      --block;
    return block;
  }
  __device__ int sequence_of(std::int64_t place) const {
    int low = 0, high = sequences - 1;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (ends[middle] > place) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }
};

__device__ __forceinline__ int tiles_of(int length, int window) {
  return (length - first_key(length, window) + kTile - 1) / kTile;
}

// Fills `ends`; `scratch` has a word for each warp.
template <typename T>
__device__ Line make_line(const Arguments<T>& a, int units, int* ends, int* scratch) {
  const int n = a.shape.sequences, per_thread = (n + kThreads - 1) / kThreads;
  const int begin = threadIdx.x * per_thread, end = min(n, begin + per_thread);
  int tiles = 0;
  for (int i = begin; i < end; ++i) {
    tiles += tiles_of(a.lengths[i], a.shape.window) * units;
    ends[i] = tiles;  // within this thread's run
  }
  // Runs before this one: scan over threads.
  int before = tiles;
#pragma unroll
  for (int offset = 1; offset < kWarp; offset *= 2) {
    const int other = __shfl_up_sync(kAllLanes, before, offset);
    if (threadIdx.x % kWarp >= offset) before += other;
  }
  if (threadIdx.x % kWarp == kWarp - 1) scratch[threadIdx.x / kWarp] = before;
  __syncthreads();
  for (int warp = 0; warp < static_cast<int>(threadIdx.x) / kWarp; ++warp)
    before += scratch[warp];
  before -= tiles;
  for (int i = begin; i < end; ++i)
    ends[i] += before;
  __syncthreads();
  // No piece is empty, so that the parts of a unit lie in neighbouring blocks.
  const int blocks = max(1, min(static_cast<int>(gridDim.x), ends[n - 1]));
  return {ends, n, blocks, ends[n - 1]};
}

// What one warp holds of its keys: the query heads' columns 2t and 2t + 1.
template <int D>
struct WarpState {
  float out[D / 16][4] = {};
  float maximum[2] = {-INFINITY, -INFINITY};
  float sum[2] = {};
};

// The keys of one sequence and key head that a block works on.
struct Span {
  const std::int32_t* pages;
  int begin, end;  // keys of this chunk
  int first_seen;  // keys before it lie outside the window
};

template <int D, typename T>
class Tiles {
 public:
  __device__ Tiles(const Arguments<T>& a, const Span& span, int kv_head)
      : a_(a),
        span_(span),
        head_(kv_head * D),
        stride_(a.shape.kv_heads * D),
        group_((threadIdx.x % kWarp) / 4),
        t_(threadIdx.x % 4) {}

  __device__ int count() const { return (span_.end - span_.begin + kTile - 1) / kTile; }

  // Element of the tile's first key.
  __device__ std::int64_t base(int tile) const {
    const int key = span_.begin + tile * kTile, page_tokens = a_.shape.page_tokens;
    const std::int64_t row =
        std::int64_t{span_.pages[key / page_tokens]} * page_tokens + key % page_tokens;
    return row * stride_ + head_;
  }

  __device__ void load_keys(std::int64_t base, int tile) {
    const int left = span_.end - span_.begin - tile * kTile;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int key = group_ + 8 * r;
#pragma unroll
      for (int j = 0; j < D / 32; ++j) {
        keys_[r][j] =
            key < left ? load_once(a_.keys + base + std::int64_t{key} * stride_ + 32 * j + 8 * t_)
                       : make_uint4(0, 0, 0, 0);
      }
    }
  }

  // Lane (g, t) holds dims 8g .. 8g + 7 (and 64 further on) of keys 2t, 2t + 1, 2t + 8, 2t + 9.
  __device__ void load_values(std::int64_t base, int tile) {
    const int left = span_.end - span_.begin - tile * kTile;
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const int key = 2 * t_ + (r & 1) + (r >> 1) * 8;
#pragma unroll
      for (int j = 0; j < D / 64; ++j) {
        values_[r][j] =
            key < left
                ? load_once(a_.values + base + std::int64_t{key} * stride_ + 64 * j + 8 * group_)
                : make_uint4(0, 0, 0, 0);
      }
    }
  }

  // s: scores of keys g and g + 8 for heads 2t and 2t + 1.
  __device__ void scores(const uint4 (&q)[D / 32], int tile, float (&s)[4]) const {
#pragma unroll
    for (int j = 0; j < D / 32; ++j) {
      multiply_add<T>(s, keys_[0][j].x, keys_[1][j].x, keys_[0][j].y, keys_[1][j].y, q[j].x,
                      q[j].y);
      multiply_add<T>(s, keys_[0][j].z, keys_[1][j].z, keys_[0][j].w, keys_[1][j].w, q[j].z,
                      q[j].w);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int key = span_.begin + tile * kTile + group_ + (i / 2) * 8;
      s[i] = key < span_.end && key >= span_.first_seen ? s[i] * a_.scale_log2 : -INFINITY;
    }
  }

  // Rows g of the 16-row operand are dims 8g + i; rows g + 8 are those 64 (head_dim 128) or 4
  // (head_dim 64) further on.
  __device__ void add_values(unsigned p0, unsigned p1, float (&out)[D / 16][4]) const {
    add_value_steps<0>(p0, p1, out);
  }

 private:
  template <int I>
  __device__ void add_value_steps(unsigned p0, unsigned p1, float (&out)[D / 16][4]) const {
    if constexpr (I < D / 16) {
      constexpr unsigned kPick =
          I % 2 == 1 ? 0x7632 : 0x5410;  // upper or lower halves of two words
      constexpr int kLow = I / 2, kHigh = D == 128 ? I / 2 : I / 2 + 2;
      constexpr int kHighPack = D == 128 ? 1 : 0;
      multiply_add<T>(
          out[I], __byte_perm(word_of<kLow>(values_[0][0]), word_of<kLow>(values_[1][0]), kPick),
          __byte_perm(word_of<kHigh>(values_[0][kHighPack]), word_of<kHigh>(values_[1][kHighPack]),
                      kPick),
          __byte_perm(word_of<kLow>(values_[2][0]), word_of<kLow>(values_[3][0]), kPick),
          __byte_perm(word_of<kHigh>(values_[2][kHighPack]), word_of<kHigh>(values_[3][kHighPack]),
                      kPick),
          p0, p1);
      add_value_steps<I + 1>(p0, p1, out);
    }
  }

  const Arguments<T>& a_;
  const Span& span_;
  int head_, stride_, group_, t_;
  uint4 keys_[2][D / 32], values_[4][D / 64];
};

__device__ __forceinline__ float over_groups_max(float x) {
#pragma unroll
  for (int offset = 4; offset < kWarp; offset *= 2)
    x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, offset));
  return x;
}

__device__ __forceinline__ float over_groups_sum(float x) {
#pragma unroll
  for (int offset = 4; offset < kWarp; offset *= 2)
    x += __shfl_xor_sync(kAllLanes, x, offset);
  return x;
}

// Online softmax over the warp's tiles. The next tile's keys are on their way while this one's
// weights are computed, its values while this one's are summed.
template <int D, typename T>
__device__ void run_tiles(Tiles<D, T>& tiles, const uint4 (&q)[D / 32], WarpState<D>& state) {
  const int count = tiles.count();
  int tile = threadIdx.x / kWarp;
  std::int64_t next_base = 0;
  if (tile < count) {
    const std::int64_t base = tiles.base(tile);
    tiles.load_keys(base, tile);
    tiles.load_values(base, tile);
  }
  if (tile + kWarps < count) next_base = tiles.base(tile + kWarps);
  for (; tile < count; tile += kWarps) {
    float s[4] = {};
    tiles.scores(q, tile, s);
    const int next = tile + kWarps;
    if (next < count) tiles.load_keys(next_base, next);
    float shrink[2];
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const float maximum = fmaxf(state.maximum[c], over_groups_max(fmaxf(s[c], s[2 + c])));
      shrink[c] = exp2_fast(state.maximum[c] - maximum);
      state.maximum[c] = maximum;
      s[c] = exp2_fast(s[c] - maximum);
      s[2 + c] = exp2_fast(s[2 + c] - maximum);
      state.sum[c] = state.sum[c] * shrink[c] + s[c] + s[2 + c];
    }
    const unsigned p0 = transpose_8x8(round_two<T>(s[0], s[1]));
    const unsigned p1 = transpose_8x8(round_two<T>(s[2], s[3]));
#pragma unroll
    for (int i = 0; i < D / 16; ++i) {
      state.out[i][0] *= shrink[0];
      state.out[i][1] *= shrink[1];
      state.out[i][2] *= shrink[0];
      state.out[i][3] *= shrink[1];
    }
    tiles.add_values(p0, p1, state.out);
    if (next < count) {
      tiles.load_values(next_base, next);
      if (next + kWarps < count) next_base = tiles.base(next + kWarps);
    }
  }
#pragma unroll
  for (int c = 0; c < 2; ++c)
    state.sum[c] = over_groups_sum(state.sum[c]);
}

template <int D>
struct Shared {
  float out[kWarps][kColumns][D];
  float maximum[kWarps][kColumns], sum[kWarps][kColumns];
  int scratch[kWarps];
  bool is_last;
};

template <int D>
__device__ void store_state(const WarpState<D>& state, Shared<D>& shared) {
  const int warp = threadIdx.x / kWarp, g = threadIdx.x % kWarp / 4, t = threadIdx.x % 4;
  constexpr int kFar = D == 128 ? 64 : 4;
#pragma unroll
  for (int i = 0; i < D / 16; ++i) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      shared.out[warp][2 * t + c][8 * g + i] = state.out[i][c];
      shared.out[warp][2 * t + c][8 * g + i + kFar] = state.out[i][2 + c];
    }
  }
  if (g == 0) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      shared.maximum[warp][2 * t + c] = state.maximum[c];
      shared.sum[warp][2 * t + c] = state.sum[c];
    }
  }
}

template <int D>
constexpr int kPartial = D + 2;

// Sums the warps' results of each head; threads take dims. A whole sequence goes to `out`, a chunk
// of one to `partials`.
template <int D, typename T>
__device__ void finish_item(const Arguments<T>& a, const Shared<D>& shared, int sequence, int head,
                            int heads, bool whole, float* partial) {
  for (int i = threadIdx.x; i < heads * D; i += kThreads) {
    const int column = i / D, dim = i % D;
    float maximum = -INFINITY, sum = 0, out = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w)
      maximum = fmaxf(maximum, shared.maximum[w][column]);
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const float weight = exp2_fast(shared.maximum[w][column] - maximum);
      sum += weight * shared.sum[w][column];
      out += weight * shared.out[w][column][dim];
    }
    if (whole) {
      store_rounded(a.out + (std::int64_t{sequence} * a.shape.heads + head + column) * D + dim,
                    out / sum);
      continue;
    }
    float* row = partial + column * kPartial<D>;
    row[dim] = out;
    if (dim == 0) {
      row[D] = maximum;
      row[D + 1] = sum;
    }
  }
}

// The partial results of one sequence and unit: of the first block in its second place, of all
// others in their first.
template <int D, typename T>
__device__ float* partial_of(const Arguments<T>& a, int block, bool first) {
  return a.partials + (block * 2 + (first ? 1 : 0)) * kColumns * kPartial<D>;
}

// The last block to finish puts all parts together, in their order.
template <int D, typename T>
__device__ void merge_parts(const Arguments<T>& a, int first_block, int last_block, int sequence,
                            int head, int heads) {
  for (int i = threadIdx.x; i < heads * D; i += kThreads) {
    const int column = i / D, dim = i % D;
    const auto part = [&](int block) {
      return partial_of<D>(a, block, block == first_block) + column * kPartial<D>;
    };
    float maximum = -INFINITY, sum = 0, out = 0;
    for (int block = first_block; block <= last_block; ++block)
      maximum = fmaxf(maximum, __ldcg(part(block) + D));
    for (int block = first_block; block <= last_block; ++block) {
      const float* row = part(block);
      const float weight = exp2_fast(__ldcg(row + D) - maximum);
      sum += weight * __ldcg(row + D + 1);
      out += weight * __ldcg(row + dim);
    }
    store_rounded(a.out + (std::int64_t{sequence} * a.shape.heads + head + column) * D + dim,
                  out / sum);
  }
}

template <int D, typename T>
__global__ void __launch_bounds__(kThreads, kBlocksAtATime)
    decode_attention_kernel(Arguments<T> a) {
  __shared__ Shared<D> shared;
  extern __shared__ int ends[];
  const int ratio = a.shape.heads / a.shape.kv_heads;    // query heads of a key head
  const int groups = (ratio + kColumns - 1) / kColumns;  // of at most kColumns of them
  const int units = a.shape.kv_heads * groups;
  const Line line = make_line(a, units, ends, shared.scratch);
  const int block = blockIdx.x;
  if (block >= line.blocks) return;
  const std::int64_t piece_end = line.begin_of_block(block + 1);
  for (std::int64_t place = line.begin_of_block(block); place < piece_end;) {
    const int sequence = line.sequence_of(place);
    const int length = a.lengths[sequence], tiles_here = tiles_of(length, a.shape.window);
    const std::int64_t sequence_begin = sequence == 0 ? 0 : ends[sequence - 1];
    const int unit = static_cast<int>(place - sequence_begin) / tiles_here;
    const std::int64_t unit_begin = sequence_begin + std::int64_t{unit} * tiles_here,
                       unit_end = unit_begin + tiles_here;
    const int kv_head = unit / groups, group = unit % groups;
    const int first_tile = static_cast<int>(place - unit_begin);
    const int last_tile = static_cast<int>(min(unit_end, piece_end) - unit_begin);
    const int begin = first_key(length, a.shape.window);
    const Span span = {a.pages + std::int64_t{sequence} * a.shape.most_pages,
                       begin + first_tile * kTile, min(length, begin + last_tile * kTile),
                       a.shape.window > 0 ? length - a.shape.window : 0};
    place = unit_begin + last_tile;
    const int heads = min(kColumns, ratio - group * kColumns);
    const int head = kv_head * ratio + group * kColumns;

    uint4 q[D / 32];
    const int column = threadIdx.x % kWarp / 4;
#pragma unroll
    for (int j = 0; j < D / 32; ++j) {
      q[j] = column < heads
                 ? *reinterpret_cast<const uint4*>(
                       a.q + (std::int64_t{sequence} * a.shape.heads + head + column) * D + 32 * j +
                       8 * (threadIdx.x % 4))
                 : make_uint4(0, 0, 0, 0);
    }
    Tiles<D, T> tiles(a, span, kv_head);
    WarpState<D> state;
    run_tiles(tiles, q, state);
    store_state(state, shared);
    __syncthreads();
    const bool whole = last_tile - first_tile == tiles_here;
    finish_item(a, shared, sequence, head, heads, whole, partial_of<D>(a, block, first_tile == 0));
    if (!whole) {
      __threadfence();
      __syncthreads();
      const int first_block = line.block_of(unit_begin), last_block = line.block_of(unit_end - 1);
      if (threadIdx.x == 0) {
        std::int32_t* counter = a.counters + sequence * units + unit;
        shared.is_last = atomicAdd(counter, 1) == last_block - first_block;
        if (shared.is_last) *counter = 0;
      }
      __syncthreads();
      if (shared.is_last) {
        __threadfence();
        merge_parts<D>(a, first_block, last_block, sequence, head, heads);
      }
    }
    __syncthreads();  // before `shared` is written again
  }
}

bool fits_tensor_cores(ElementType type, const DecodeAttentionShape& shape) {
  return type != ElementType::kFloat32 && (shape.head_dim == 64 || shape.head_dim == 128) &&
         shape.page_tokens % kTile == 0;
}

// Blocks that run at a time on the current device.
int resident_blocks() {
  int device = 0, multiprocessors = 0;
  cudaError_t status = cudaGetDevice(&device);
  if (status == cudaSuccess)
    status = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (status != cudaSuccess) fail_launch("decode_attention", status);
  return kBlocksAtATime * multiprocessors;
}

int units_of(const DecodeAttentionShape& shape) {
  return shape.kv_heads * static_cast<int>(ceil_div(shape.heads / shape.kv_heads, kColumns));
}

template <typename T>
void run(const DecodeAttentionShape& shape, const void* q, const void* keys, const void* values,
         const std::int32_t* pages, const std::int32_t* lengths, double scale, void* out,
         float* partials, std::int32_t* counters, cudaStream_t stream) {
  constexpr double kLog2E = 1.4426950408889634;
  const Arguments<T> arguments = {shape,
                                  static_cast<const T*>(q),
                                  static_cast<const T*>(keys),
                                  static_cast<const T*>(values),
                                  pages,
                                  lengths,
                                  static_cast<float>(scale * kLog2E),
                                  static_cast<T*>(out),
                                  partials,
                                  counters};
  const std::size_t ends = sizeof(int) * static_cast<std::size_t>(shape.sequences);
  (shape.head_dim == 128
       ? decode_attention_kernel<128, T>
       : decode_attention_kernel<64, T>)<<<resident_blocks(), kThreads, ends, stream>>>(arguments);
}

}  // namespace

DecodeWorkspace decode_attention_workspace(const DecodeAttentionShape& shape) {
  const std::int64_t blocks = resident_blocks();
  return {2 * blocks * kColumns * (shape.head_dim + 2), shape.sequences * units_of(shape)};
}

void launch_decode_attention(ElementType type, const DecodeAttentionShape& shape, const void* q,
                             const void* keys, const void* values, const std::int32_t* pages,
                             const std::int32_t* lengths, double scale, void* out, float* partials,
                             std::int32_t* counters, cudaStream_t stream) {
  if (shape.sequences == 0) return;
  if (!fits_tensor_cores(type, shape)) {
    launch_decode_attention_plain(type, shape, q, keys, values, pages, lengths, scale, out, stream);
    return;
  }
  (type == ElementType::kFloat16 ? run<__half> : run<__nv_bfloat16>)(shape, q, keys, values, pages,
                                                                     lengths, scale, out, partials,
                                                                     counters, stream);
  check_launch("decode_attention");
}

}  // namespace antisd::inline ops
