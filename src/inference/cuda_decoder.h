// Decoding on a GPU: a step is one CUDA graph, and the slots live on the device, so that a step
// begins where the last one ended without the host.
#pragma once

#include "inference/decoder.h"

namespace antisd::inline inference {

// The model's device must be a GPU.
std::unique_ptr<Decoder> make_cuda_decoder(const CausalLm& model, const KvPool& pool,
                                           const DecoderSettings& settings);

}  // namespace antisd::inline inference
