// A layer's maths on a CPU without gradients, on the calling thread. Tokens are in the lanes of a
// vector: a panel is [features, kPanelTokens], dense. So a product reads several weights at a time
// in place, a norm sums without crossing lanes, and data stays in the cache between two steps of a
// layer.
//
//   PanelBuffer memory;
//   const Panels y = memory.panels(out, x.count);
//   panel_norm(x, norm, eps, x);
//   panel_product(weight, bias, x, y, /*add=*/false);  // weight: [out, x.features]
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace antisd::inline ops {

inline constexpr std::int64_t kPanelTokens = 16;

inline std::int64_t panel_count(std::int64_t tokens) {
  return (tokens + kPanelTokens - 1) / kPanelTokens;
}

// `count` panels of `features` rows each; a panel starts `stride` floats after the previous one.
// Lanes beyond the last token hold unused numbers.
struct Panels {
  float* values = nullptr;
  std::int64_t features = 0, count = 0, stride = 0;

  float* at(std::int64_t panel, std::int64_t feature = 0) const {
    return values + panel * stride + feature * kPanelTokens;
  }
  Panels rows(std::int64_t first, std::int64_t number) const {
    return {at(0, first), number, count, stride};
  }
  Panels run(std::int64_t first, std::int64_t number) const {
    return {at(first), features, number, stride};
  }
};

// Memory for panels, kept between calls: fresh pages cost as much as the arithmetic on them.
class PanelBuffer {
 public:
  Panels panels(std::int64_t features, std::int64_t count);

 private:
  at::Tensor memory_;
};

// Copies rows [tokens, features], `row` floats apart, to panels and back.
void load_panels(const float* from, std::int64_t row, std::int64_t tokens, Panels to);
void store_panels(Panels from, std::int64_t tokens, float* to, std::int64_t row);

// y = x / rms(x) * weight for each token; y may be x.
void panel_norm(Panels x, const float* weight, float eps, Panels y);

// Norms each run of `width` features separately, in place.
void panel_norm_heads(Panels x, const float* weight, std::int64_t width, float eps);

// Rotates each head in place; cosine, sine: panels of [head_dim / 2].
void panel_rotate(Panels x, std::int64_t head_dim, Panels cosine, Panels sine);

void panel_add(Panels x, Panels y);  // y += x
void panel_scale(Panels x, float factor);
void panel_gate(Panels gate, Panels up, Panels y);  // y = silu(gate) * up

// y = weight x (+ bias) (+ y if `add`); weight: [y.features, x.features], bias may be null.
void panel_product(const float* weight, const float* bias, Panels x, Panels y, bool add);

// y = silu(gate x) * up x; gate_up: [2 * y.features, x.features], gate first; bias likewise, or
// null.
void panel_gated_product(const float* gate_up, const float* bias, Panels x, Panels y);

// y [tokens, out] = x [tokens, in] weight^T (+ residual, or null), dense rows.
void panel_row_product(const float* weight, const float* x, std::int64_t tokens, std::int64_t in,
                       std::int64_t out, const float* residual, float* y);

}  // namespace antisd::inline ops
