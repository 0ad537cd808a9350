// Decoding of small models on a CPU: one parallel region a step. A thread takes a block of rows
// from embedding to sampled token, without waiting for anybody in between.
#pragma once

#include "inference/decoder.h"

namespace antisd::inline inference {

// Whether the model is small and plain enough: fp32 on a CPU, no experts, weights that a core's
// share of the cache hierarchy can stream for each block of rows.
bool fused_decode_suits(const CausalLm& model);

std::unique_ptr<Decoder> make_fused_decoder(const CausalLm& model, const KvPool& pool,
                                            const DecoderSettings& settings);

}  // namespace antisd::inline inference
