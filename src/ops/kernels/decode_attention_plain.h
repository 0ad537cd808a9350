#pragma once

#include "ops/kernels/decode_attention.h"

namespace antisd::inline ops {

// Any precision and head_dim up to 256: a warp for each (sequence, query head), key by key. For
// shapes that no large model has.
void launch_decode_attention_plain(ElementType type, const DecodeAttentionShape& shape,
                                   const void* q, const void* keys, const void* values,
                                   const std::int32_t* pages, const std::int32_t* lengths,
                                   double scale, void* out, cudaStream_t stream);

}  // namespace antisd::inline ops
