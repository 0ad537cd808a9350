// Ops without a gradient. Each check returns the largest error in units of the allowed one: at most
// 1 is correct.
#pragma once

#include "ops/attention_inputs.h"
#include "ops/kernels/quantized_formulas.cuh"
#include "ops/optest/op_case.h"
#include "ops/ragged_runs.h"
#include "ops/sampling.h"

namespace antisd::inline ops {

// Sampling noise must agree bit for bit with CounterRng; 0 or a large number.
double uniform_noise_error(at::Device device);

// Three steps of AdamW, compared with the textbook formula in double. Moments and masters are fp32
// on every backend, so the tolerance is fp32's; a 16-bit weight is its rounded master.
double adamw_error(const Backend& backend, std::int64_t count);

double squared_norms_error(const Backend& backend);

// Codes, scales and dequantised values must be the CPU's, bit for bit; 0 or a large number.
double quantize_error(QuantizedKind kind, std::int64_t columns, const Backend& backend);

// Sequences of several lengths with pages in random order; store_kv writes keys and values. Returns
// the largest error in units of the tolerance.
double decode_attention_error(AttentionShape shape, std::int64_t window, const Backend& backend);

#ifdef ANTISD_CUDA
// Our grouped product, bit for bit; 0 or a large number. Captured for some ends, it is right for
// others; a row's result is the same among few rows and among many; without the gradient of one
// operand, the other's is the same. `backend`: a GPU, 16 bits.
double grouped_product_error(const Backend& backend);

struct AttentionBits {
  std::int32_t prefix = 0;
  std::int64_t window = 0;
  RaggedLimits limits = {};
};

// Attention by cuDNN's ragged path, and its gradients: the same bits when they are computed again,
// in memory that was full of NaN; 0 or a large number. Where there is no such path, 0.
double attention_bits_error(const AttentionBits& check, const Backend& backend);
#endif

enum class LogitKind { kNormal, kFlat, kPeaked, kTwoValues, kEqual };

// Counts tokens whose cumulative range misses the noise by more than rounding, and wrong
// log-probabilities.
double sample_error(const SamplingSettings& settings, LogitKind kind, std::int64_t rows,
                    std::int64_t vocabulary, at::Device device);

}  // namespace antisd::inline ops
