// The instructions of a matrix product that every GPU from compute capability 8.0 on has:
// asynchronous copies into shared memory, loads of 8 x 8 matrices from there, and products of
// 16 x 16 by 16 x 8 elements of 16 bits with sums in fp32.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace antisd::inline ops {

__device__ __forceinline__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// 16 bytes from global memory past the L1 cache; zeros if not `present`, `from` is then not read.
__device__ __forceinline__ void copy_async(void* shared, const void* from, bool present) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
               "l"(__cvta_generic_to_global(from)), "r"(present ? 16 : 0)
               : "memory");
}

// Ends a group of copies.
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most Groups of this thread's groups are under way.
template <int Groups>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Groups) : "memory");
}

// Four 8 x 8 matrices; lanes 8i .. 8i + 7 point to the 16-byte rows of matrix i. Lane l gets the
// elements 2 (l % 4) and the next one of row l / 4 of each; with kTransposed, of its column l / 4.
template <bool kTransposed>
__device__ __forceinline__ void load_matrices(const void* row, unsigned (&matrices)[4]) {
  if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
                 : "r"(shared_address(row))
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
                 : "r"(shared_address(row))
                 : "memory");
  }
}

// sum [16, 8] += a [16, 16] b [16, 8]. a: the quarters at (0, 0), (8, 0), (0, 8), (8, 8) as
// load_matrices gives them; b0, b1: rows 0 - 7 and 8 - 15 of b, transposed. Lane l has of the sum
// the columns 2 (l % 4) and the next one, in row l / 4 (sum[0], sum[1]) and eight rows below.
template <typename T>
__device__ __forceinline__ void multiply_add(float (&sum)[4], const unsigned (&a)[4], unsigned b0,
                                             unsigned b1);

template <>
__device__ __forceinline__ void multiply_add<__nv_bfloat16>(float (&sum)[4], const unsigned (&a)[4],
                                                            unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <>
__device__ __forceinline__ void multiply_add<__half>(float (&sum)[4], const unsigned (&a)[4],
                                                     unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace antisd::inline ops
