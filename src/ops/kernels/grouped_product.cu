#include <type_traits>

#include "ops/kernels/group_tiles.cuh"
#include "ops/kernels/grouped_product.h"
#include "ops/kernels/launch.h"
#include "ops/kernels/matrix_tile.cuh"

namespace antisd::inline ops {
namespace {

// For a handful of rows an expert the time is that of reading the weights: a deep pipeline of them,
// and no more rows than needed. For many rows, 64 x 64 a warp needs the fewest reads of shared
// memory.
using FewRows = TileShape<32, 64, 64, 4, 32, 16>;
using SomeRows = TileShape<64, 128, 32, 4, 32, 64>;
using ManyRows = TileShape<128, 128, 32, 3, 64, 64>;

// y[rows of e] = x[rows of e] times w[e]^T (kB = kDepth; w[e] is [width, depth]) or w[e] (kSide;
// w[e] is [depth, width]). Neighbouring blocks share their rows of x.
template <typename Shape, Along kB, bool kAligned, typename T>
__global__ void __launch_bounds__(Shape::kThreads)
    rows_kernel(const T* x, const T* w, const std::int32_t* ends, int experts, int depth, int width,
                int column_tiles, T* y) {
  __shared__ alignas(128) T memory[Shape::kElements];
  const int slot = static_cast<int>(blockIdx.x) / column_tiles;
  const int column = static_cast<int>(blockIdx.x) % column_tiles * Shape::kColumns;
  const GroupTile tile = find_group_tile(ends, experts, Shape::kRows, slot);
  if (tile.begin >= tile.end) return;
  const int rows = tile.end - tile.begin;
  const MatrixView<const T> a = {x + std::int64_t{tile.begin} * depth, depth, rows, depth};
  const T* const weight = w + std::int64_t{tile.group} * depth * width;
  MatrixView<const T> b = {weight, depth, width, depth};
  if constexpr (kB == Along::kSide) b = {weight, width, depth, width};
  const MatrixView<T> to = {y + std::int64_t{tile.begin} * width, width, rows, width};
  multiply_tile<Shape, Along::kDepth, kB, kAligned>(a, b, 0, column, depth, to, memory);
}

template <typename Shape, bool kAligned, typename T>
__global__ void __launch_bounds__(Shape::kThreads)
    weight_kernel(const T* dy, const T* x, const std::int32_t* ends, int in, int out, T* dw) {
  __shared__ alignas(128) T memory[Shape::kElements];
  const int across = (in + Shape::kColumns - 1) / Shape::kColumns;
  const int tiles = (out + Shape::kRows - 1) / Shape::kRows * across;
  const int expert = static_cast<int>(blockIdx.x) / tiles;
  const int tile = static_cast<int>(blockIdx.x) % tiles;
  const int begin = group_begin(ends, expert), rows = ends[expert] - begin;
  const MatrixView<const T> a = {dy + std::int64_t{begin} * out, out, rows, out};
  const MatrixView<const T> b = {x + std::int64_t{begin} * in, in, rows, in};
  const MatrixView<T> to = {dw + std::int64_t{expert} * out * in, in, out, in};
  multiply_tile<Shape, Along::kSide, Along::kSide, kAligned>(
      a, b, tile / across * Shape::kRows, tile % across * Shape::kColumns, rows, to, memory);
}

template <typename Launch>
void with_small_element(ElementType type, const Launch& launch) {
  type == ElementType::kFloat16 ? launch(__half()) : launch(__nv_bfloat16());
}

template <typename... Pointers>
bool allows_packs(const GroupedShape& shape, Pointers... pointers) {
  return shape.in % 8 == 0 && shape.out % 8 == 0 && aligned_to_16(pointers...);
}

template <Along kB>
void launch_rows(ElementType type, const GroupedShape& shape, const void* x, const void* w,
                 const std::int32_t* ends, int depth, int width, void* y, cudaStream_t stream) {
  if (shape.rows == 0) return;
  const int rows_per_expert = shape.rows / shape.experts;
  with_small_element(type, [&](auto element) {
    using T = decltype(element);
    const auto launch = [&](auto tile_shape, auto aligned) {
      using Shape = decltype(tile_shape);
      const int column_tiles = static_cast<int>(ceil_div(width, Shape::kColumns));
      const std::int64_t slots = group_tile_slots(shape.rows, shape.experts, Shape::kRows);
      rows_kernel<Shape, kB, decltype(aligned)::value>
          <<<grid_for(slots * column_tiles, 1), Shape::kThreads, 0, stream>>>(
              static_cast<const T*>(x), static_cast<const T*>(w), ends, shape.experts, depth, width,
              column_tiles, static_cast<T*>(y));
    };
    if (!allows_packs(shape, x, w, y)) {
      launch(SomeRows(), std::false_type());
    } else if (rows_per_expert <= 24) {
      launch(FewRows(), std::true_type());
    } else if (rows_per_expert <= 96) {
      launch(SomeRows(), std::true_type());
    } else {
      launch(ManyRows(), std::true_type());
    }
  });
}

}  // namespace

void launch_grouped_product(ElementType type, const GroupedShape& shape, const void* x,
                            const void* w, const std::int32_t* ends, void* y, cudaStream_t stream) {
  launch_rows<Along::kDepth>(type, shape, x, w, ends, shape.in, shape.out, y, stream);
  check_launch("grouped_product");
}

void launch_grouped_input_gradient(ElementType type, const GroupedShape& shape, const void* dy,
                                   const void* w, const std::int32_t* ends, void* dx,
                                   cudaStream_t stream) {
  launch_rows<Along::kSide>(type, shape, dy, w, ends, shape.out, shape.in, dx, stream);
  check_launch("grouped_input_gradient");
}

void launch_grouped_weight_gradient(ElementType type, const GroupedShape& shape, const void* dy,
                                    const void* x, const std::int32_t* ends, void* dw,
                                    cudaStream_t stream) {
  with_small_element(type, [&](auto element) {
    using T = decltype(element);
    const auto launch = [&](auto tile_shape, auto aligned) {
      using Shape = decltype(tile_shape);
      const std::int64_t tiles =
          ceil_div(shape.out, Shape::kRows) * ceil_div(shape.in, Shape::kColumns);
      weight_kernel<Shape, decltype(aligned)::value>
          <<<grid_for(shape.experts * tiles, 1), Shape::kThreads, 0, stream>>>(
              static_cast<const T*>(dy), static_cast<const T*>(x), ends, shape.in, shape.out,
              static_cast<T*>(dw));
    };
    if (allows_packs(shape, dy, x, dw)) {
      launch(ManyRows(), std::true_type());
    } else {
      launch(SomeRows(), std::false_type());
    }
  });
  check_launch("grouped_weight_gradient");
}

}  // namespace antisd::inline ops
