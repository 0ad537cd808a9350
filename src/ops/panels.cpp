#include "ops/panels.h"

#include <algorithm>

#include "ops/simd.h"
#include "ops/swiglu.h"
#include "ops/tile_product.h"

namespace antisd::inline ops {
namespace {

constexpr std::int64_t kStrip = 48;   // rows of weights that stay in cache for all panels
constexpr std::int64_t kInner = 256;  // inputs at a time: half of the L1 cache

ANTISD_SIMD_CLONES void norm_panel(const float* x, const float* weight, std::int64_t features,
                                   float eps, float* y) {
  float scale[kPanelTokens] = {};
  for (std::int64_t f = 0; f < features; ++f) {
#pragma omp simd
    for (int i = 0; i < kPanelTokens; ++i)
      scale[i] += x[f * kPanelTokens + i] * x[f * kPanelTokens + i];
  }
#pragma omp simd
  for (int i = 0; i < kPanelTokens; ++i)
    scale[i] = 1.0f / __builtin_sqrtf(scale[i] / static_cast<float>(features) + eps);
  for (std::int64_t f = 0; f < features; ++f) {
    const float factor = weight[f];
#pragma omp simd
    for (int i = 0; i < kPanelTokens; ++i)
      y[f * kPanelTokens + i] = x[f * kPanelTokens + i] * scale[i] * factor;
  }
}

// The numbers of one head: a first half and a second half.
ANTISD_SIMD_CLONES void rotate_panel(float* x, std::int64_t half, const float* cosine,
                                     const float* sine) {
  float *first = x, *second = x + half;
#pragma omp simd
  for (std::int64_t i = 0; i < half; ++i) {
    const float a = first[i], b = second[i];
    first[i] = a * cosine[i] - b * sine[i];
    second[i] = b * cosine[i] + a * sine[i];
  }
}

ANTISD_SIMD_CLONES void add_numbers(const float* x, std::int64_t count, float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i)
    y[i] += x[i];
}

ANTISD_SIMD_CLONES void add_bias(const float* bias, std::int64_t rows, float* y) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float value = bias[row];
#pragma omp simd
    for (int i = 0; i < kPanelTokens; ++i)
      y[row * kPanelTokens + i] += value;
  }
}

// out: [rows, kPanelTokens] = weight [rows, inputs] x of one panel.
void strip_product(const float* weight, const float* bias, std::int64_t inputs, std::int64_t rows,
                   const float* x, float* out, bool add) {
  for (std::int64_t k = 0; k < inputs; k += kInner) {
    tile_product(rows, kPanelTokens, std::min(kInner, inputs - k), {weight + k, inputs, 1},
                 x + k * kPanelTokens, kPanelTokens, out, kPanelTokens, add || k > 0);
  }
  if (bias != nullptr) add_bias(bias, rows, out);
}

const float* from(const float* bias, std::int64_t row) {
  return bias == nullptr ? nullptr : bias + row;
}

}  // namespace

Panels PanelBuffer::panels(std::int64_t features, std::int64_t count) {
  const std::int64_t size = features * count * kPanelTokens;
  if (!memory_.defined() || memory_.numel() < size) memory_ = at::empty({size}, at::kFloat);
  return {memory_.data_ptr<float>(), features, count, features * kPanelTokens};
}

void load_panels(const float* from, std::int64_t row, std::int64_t tokens, Panels to) {
  for (std::int64_t p = 0; p < to.count; ++p) {
    transpose_tile(from + p * kPanelTokens * row, row,
                   std::min(kPanelTokens, tokens - p * kPanelTokens), to.features, to.at(p),
                   kPanelTokens, kPanelTokens);
  }
}

void store_panels(Panels from, std::int64_t tokens, float* to, std::int64_t row) {
  for (std::int64_t p = 0; p < from.count; ++p) {
    transpose_tile(from.at(p), kPanelTokens, from.features,
                   std::min(kPanelTokens, tokens - p * kPanelTokens), to + p * kPanelTokens * row,
                   row);
  }
}

void panel_norm(Panels x, const float* weight, float eps, Panels y) {
  for (std::int64_t p = 0; p < x.count; ++p)
    norm_panel(x.at(p), weight, x.features, eps, y.at(p));
}

void panel_norm_heads(Panels x, const float* weight, std::int64_t width, float eps) {
  for (std::int64_t first = 0; first < x.features; first += width)
    panel_norm(x.rows(first, width), weight, eps, x.rows(first, width));
}

void panel_rotate(Panels x, std::int64_t head_dim, Panels cosine, Panels sine) {
  for (std::int64_t p = 0; p < x.count; ++p) {
    for (std::int64_t head = 0; head < x.features; head += head_dim)
      rotate_panel(x.at(p, head), head_dim / 2 * kPanelTokens, cosine.at(p), sine.at(p));
  }
}

void panel_add(Panels x, Panels y) {
  for (std::int64_t p = 0; p < x.count; ++p)
    add_numbers(x.at(p), x.features * kPanelTokens, y.at(p));
}

void panel_scale(Panels x, float factor) {
  for (std::int64_t p = 0; p < x.count; ++p)
    std::transform(x.at(p), x.at(p, x.features), x.at(p), [=](float v) { return v * factor; });
}

void panel_gate(Panels gate, Panels up, Panels y) {
  for (std::int64_t p = 0; p < y.count; ++p)
    cpu_swiglu(gate.at(p), up.at(p), y.features * kPanelTokens, y.at(p));
}

void panel_product(const float* weight, const float* bias, Panels x, Panels y, bool add) {
  for (std::int64_t row = 0; row < y.features; row += kStrip) {
    const std::int64_t rows = std::min(kStrip, y.features - row);
    for (std::int64_t p = 0; p < x.count; ++p) {
      strip_product(weight + row * x.features, from(bias, row), x.features, rows, x.at(p),
                    y.at(p, row), add);
    }
  }
}

void panel_gated_product(const float* gate_up, const float* bias, Panels x, Panels y) {
  alignas(64) float gate[kStrip * kPanelTokens], up[kStrip * kPanelTokens];
  const std::int64_t width = y.features;
  for (std::int64_t row = 0; row < width; row += kStrip) {
    const std::int64_t rows = std::min(kStrip, width - row);
    for (std::int64_t p = 0; p < x.count; ++p) {
      strip_product(gate_up + row * x.features, from(bias, row), x.features, rows, x.at(p), gate,
                    /*add=*/false);
      strip_product(gate_up + (width + row) * x.features, from(bias, width + row), x.features, rows,
                    x.at(p), up, /*add=*/false);
      cpu_swiglu(gate, up, rows * kPanelTokens, y.at(p, row));
    }
  }
}

void panel_row_product(const float* weight, const float* x, std::int64_t tokens, std::int64_t in,
                       std::int64_t out, const float* residual, float* y) {
  thread_local PanelBuffer inputs, outputs;
  const Panels from = inputs.panels(in, panel_count(tokens));
  const Panels to = outputs.panels(out, panel_count(tokens));
  load_panels(x, in, tokens, from);
  panel_product(weight, nullptr, from, to, /*add=*/false);
  store_panels(to, tokens, y, out);
  if (residual != nullptr) add_numbers(residual, tokens * out, y);
}

}  // namespace antisd::inline ops
