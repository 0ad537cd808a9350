// One block computes one tile of a matrix product of 16-bit elements: y = a b^T with sums in fp32.
// The sum's index is called depth. Every tile shape adds the depth in the same order, 16 terms at a
// time, so that an element of y does not depend on the shape nor on other rows.
//
//   __shared__ alignas(128) T memory[Shape::kElements];
//   multiply_tile<Shape, Along::kDepth, Along::kDepth, true>(a, b, row, column, depth, y, memory);
#pragma once

#include <cstdint>

#include "ops/kernels/pack.cuh"
#include "ops/kernels/reduce.cuh"
#include "ops/kernels/tensor_core.cuh"
#include "ops/kernels/tile_layout.cuh"

namespace antisd::inline ops {

// Stages of kDepth are in shared memory, all but one of them on their way there. The whole takes
// at most the 48 KiB that every GPU gives a block, so that two blocks share a multiprocessor of
// 100.
template <int Rows, int Columns, int Depth, int Stages, int WarpRows, int WarpColumns>
struct TileShape {
  static constexpr int kRows = Rows, kColumns = Columns, kDepth = Depth, kStages = Stages;
  static constexpr int kWarpRows = WarpRows, kWarpColumns = WarpColumns;
  static constexpr int kThreads = Rows / WarpRows * (Columns / WarpColumns) * kWarp;
  static constexpr int kStage = (Rows + Columns) * Depth;
  static constexpr int kElements = Stages * kStage;
  static_assert(2 * kElements <= 48 * 1024 && Rows * Columns <= kElements);
  static_assert(WarpRows % 16 == 0 && WarpColumns % 16 == 0 && Depth % 16 == 0);
};

// `rows` x `columns` elements, rows `stride` elements apart; zeros beyond them.
template <typename T>
struct MatrixView {
  T* data;
  std::int64_t stride;
  int rows, columns;
};

// Copies Rows x Width elements of the view from (row, column) on. kAligned: rows start at multiples
// of 16 bytes and have whole packs; the copy is then asynchronous.
template <int Rows, int Width, int Threads, bool kAligned, typename T>
__device__ __forceinline__ void load_part(const MatrixView<const T>& from, int row, int column,
                                          T* part) {
  constexpr int kPacks = Width / 8, kRowsAtOnce = Threads / kPacks;
  static_assert(Threads % kPacks == 0 && Rows % kRowsAtOnce == 0);
  const int pack = static_cast<int>(threadIdx.x) % kPacks;
  const int first = static_cast<int>(threadIdx.x) / kPacks;
  const int left = from.columns - (column + pack * 8);  // elements from here to the row's end
  const T* source = from.data + (row + first) * from.stride + column + pack * 8;
#pragma unroll
  for (int i = 0; i < Rows; i += kRowsAtOnce) {
    T* to = part + part_place<Width>(first + i, pack);
    const bool row_exists = row + first + i < from.rows;
    if constexpr (kAligned) {
      copy_async(to, source, row_exists && left > 0);
    } else {
#pragma unroll
      for (int j = 0; j < 8; ++j)
        to[j] = row_exists && j < left ? source[j] : T(0.0f);
    }
    source += kRowsAtOnce * from.stride;
  }
}

// A part of an operand in shared memory: Side of its rows, Depth deep.
template <Along kAlong, int Side, int Depth>
struct OperandPart {
  static constexpr bool kTransposed = kAlong == Along::kSide;
  static constexpr int kWidth = kTransposed ? Side : Depth;

  template <int Threads, bool kAligned, typename T>
  static __device__ __forceinline__ void load(const MatrixView<const T>& from, int side, int depth,
                                              T* part) {
    if constexpr (kTransposed) {
      load_part<Depth, Side, Threads, kAligned>(from, depth, side, part);
    } else {
      load_part<Side, Depth, Threads, kAligned>(from, side, depth, part);
    }
  }

  // The four 8 x 8 quarters of 16 rows from `side` and 16 of depth, as quarter_place orders them.
  template <bool kSideFirst, typename T>
  static __device__ __forceinline__ void quarters(const T* part, int side, int depth,
                                                  unsigned (&matrices)[4]) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int place = quarter_place<kAlong, kWidth, kSideFirst>(lane, side, depth);
    load_matrices<kTransposed>(part + place, matrices);
  }
};

// Rounds the block's sums and stores them as y's tile at (row, column). `memory` may be in use by
// other warps until the first barrier.
template <typename Shape, bool kAligned, typename T, int kRowSteps, int kColumnSteps>
__device__ __forceinline__ void store_tile(const float (&sums)[kRowSteps][kColumnSteps][4],
                                           int warp_row, int warp_column, const MatrixView<T>& y,
                                           int row, int column, T* memory) {
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (int i = 0; i < kRowSteps; ++i) {
#pragma unroll
    for (int j = 0; j < kColumnSteps; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int at = part_place<Shape::kColumns>(warp_row + i * 16 + half * 8 + lane / 4,
                                                   warp_column / 8 + j) +
                       lane % 4 * 2;
        *reinterpret_cast<unsigned*>(memory + at) =
            round_two<T>(sums[i][j][2 * half], sums[i][j][2 * half + 1]);
      }
    }
  }
  __syncthreads();
  constexpr int kPacks = Shape::kColumns / 8;
  for (int i = static_cast<int>(threadIdx.x); i < Shape::kRows * kPacks; i += Shape::kThreads) {
    const int at_row = row + i / kPacks, at_column = column + i % kPacks * 8;
    if (at_row >= y.rows || at_column >= y.columns) continue;
    const T* from = memory + part_place<Shape::kColumns>(i / kPacks, i % kPacks);
    T* to = y.data + at_row * y.stride + at_column;
    if constexpr (kAligned) {
      store_pack(to, load_pack<8>(from));
    } else {
      for (int j = 0; j < 8 && at_column + j < y.columns; ++j)
        to[j] = from[j];
    }
  }
}

// The tile of y at (row, column); a has the rows of y, b its columns.
template <typename Shape, Along kA, Along kB, bool kAligned, typename T>
__device__ __forceinline__ void multiply_tile(const MatrixView<const T>& a,
                                              const MatrixView<const T>& b, int row, int column,
                                              int depth, const MatrixView<T>& y, T* memory) {
  using PartA = OperandPart<kA, Shape::kRows, Shape::kDepth>;
  using PartB = OperandPart<kB, Shape::kColumns, Shape::kDepth>;
  constexpr int kRowSteps = Shape::kWarpRows / 16, kColumnSteps = Shape::kWarpColumns / 8;
  constexpr int kWarpsAcross = Shape::kColumns / Shape::kWarpColumns;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int warp_row = warp / kWarpsAcross * Shape::kWarpRows;
  const int warp_column = warp % kWarpsAcross * Shape::kWarpColumns;
  const int steps = (depth + Shape::kDepth - 1) / Shape::kDepth;

  const auto stage = [&](int step) { return memory + step % Shape::kStages * Shape::kStage; };
  const auto load = [&](int step) {
    if (step < steps) {
      T* const to = stage(step);
      PartA::template load<Shape::kThreads, kAligned>(a, row, step * Shape::kDepth, to);
      PartB::template load<Shape::kThreads, kAligned>(b, column, step * Shape::kDepth,
                                                      to + Shape::kRows * Shape::kDepth);
    }
    commit_copies();  // also an empty group, so that the count of groups is the count of steps
  };

  float sums[kRowSteps][kColumnSteps][4] = {};
#pragma unroll
  for (int step = 0; step < Shape::kStages - 1; ++step)
    load(step);
  for (int step = 0; step < steps; ++step) {
    wait_for_copies<Shape::kStages - 2>();
    __syncthreads();  // every thread's copies are here, and nobody reads the last step's stage
    load(step + Shape::kStages - 1);
    const T *part_a = stage(step), *part_b = part_a + Shape::kRows * Shape::kDepth;
#pragma unroll
    for (int k = 0; k < Shape::kDepth; k += 16) {
      unsigned left[kRowSteps][4], right[kColumnSteps / 2][4];
#pragma unroll
      for (int i = 0; i < kRowSteps; ++i)
        PartA::template quarters<true>(part_a, warp_row + i * 16, k, left[i]);
#pragma unroll
      for (int j = 0; j < kColumnSteps / 2; ++j)
        PartB::template quarters<false>(part_b, warp_column + j * 16, k, right[j]);
#pragma unroll
      for (int i = 0; i < kRowSteps; ++i) {
#pragma unroll
        for (int j = 0; j < kColumnSteps; ++j)
          multiply_add<T>(sums[i][j], left[i], right[j / 2][j % 2 * 2],
                          right[j / 2][j % 2 * 2 + 1]);
      }
    }
  }
  wait_for_copies<0>();
  store_tile<Shape, kAligned>(sums, warp_row, warp_column, y, row, column, memory);
}

}  // namespace antisd::inline ops
