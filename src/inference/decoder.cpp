#include "inference/decoder.h"

#include "core/check.h"
#include "inference/cuda_decoder.h"
#include "inference/fused_decoder.h"

namespace antisd::inline inference {

void Decoder::sample_as(int, const SequenceSampling&) {
  ANTISD_CHECK(false);
}

std::unique_ptr<Decoder> make_decoder(const CausalLm& model, const KvPool& pool,
                                      const DecoderSettings& settings) {
#ifdef ANTISD_CUDA
  // A captured step cannot wait for layers of other ranks.
  if (model.device().is_cuda() && model.has_all_layers())
    return make_cuda_decoder(model, pool, settings);
#endif
  return make_individual_decoder(model, pool, settings);
}

std::unique_ptr<Decoder> make_individual_decoder(const CausalLm& model, const KvPool& pool,
                                                 const DecoderSettings& settings) {
  if (fused_decode_suits(model)) return make_fused_decoder(model, pool, settings);
  return make_tensor_decoder(model, pool, settings);
}

}  // namespace antisd::inline inference
