#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "ops/kernels/element_type.h"

namespace antisd::inline ops {

// Rotates the halves of each head in place: (a, b) -> (a cos - b sin, b cos + a sin), where a is
// the first half of a head and b the second; direction -1 rotates back (the backward pass). x:
// [tokens, heads, head_dim] of `type`, tokens `token_stride` elements apart; cosine, sine: fp32
// [max_position, head_dim / 2]; positions: int32 [tokens].
void launch_rope(ElementType type, void* x, std::int64_t token_stride, const float* cosine,
                 const float* sine, const std::int32_t* positions, std::int64_t tokens, int heads,
                 int head_dim, int direction, cudaStream_t stream);

}  // namespace antisd::inline ops
