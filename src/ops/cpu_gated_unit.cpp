#include "ops/cpu_gated_unit.h"

#include "core/check.h"
#include "ops/simd.h"
#include "ops/swiglu.h"
#include "ops/tile_product.h"

namespace antisd {
namespace {

constexpr std::int64_t kLane = 16;    // tokens of a panel: [features, kLane], dense
constexpr std::int64_t kPanels = 16;  // of a task: all meet a strip of weights while it is in cache
constexpr std::int64_t kStrip = 48;   // rows of weights
constexpr std::int64_t kInner = 256;  // inputs at a time: half of the first cache
constexpr std::int64_t kTokens = kLane * kPanels;

// Panels of up to kTokens tokens with `features` rows each, in memory that the thread keeps: fresh
// pages cost as much as the arithmetic on them. Panels of different `place` live side by side.
struct Panels {
  std::int64_t features, count;
  float* values;

  Panels(int place, std::int64_t features, std::int64_t tokens)
      : features(features), count((tokens + kLane - 1) / kLane) {
    thread_local std::vector<float> memory[3];
    const auto size = static_cast<std::size_t>(features * kLane * count);
    if (memory[place].size() < size) memory[place].resize(size);
    values = memory[place].data();
  }
  float* at(std::int64_t panel, std::int64_t feature = 0) {
    return values + (panel * features + feature) * kLane;
  }
};

Panels to_panels(const float* x, std::int64_t tokens, std::int64_t features) {
  Panels panels(0, features, tokens);
  for (std::int64_t p = 0; p < panels.count; ++p) {
    transpose_tile(x + p * kLane * features, features, std::min(kLane, tokens - p * kLane),
                   features, panels.at(p), kLane);
  }
  return panels;
}

ANTISD_SIMD_CLONES void add_numbers(const float* x, std::int64_t count, float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i)
    y[i] += x[i];
}

void from_panels(Panels& panels, std::int64_t tokens, const float* residual, float* y) {
  const std::int64_t features = panels.features;
  for (std::int64_t p = 0; p < panels.count; ++p) {
    const std::int64_t at = p * kLane * features, count = std::min(kLane, tokens - p * kLane);
    transpose_tile(panels.at(p), kLane, features, count, y + at, features);
    if (residual != nullptr) add_numbers(residual + at, count * features, y + at);
  }
}

// out[first, first + rows) of a panel = weight[first, first + rows) x.
void strip_product(const float* weight, std::int64_t inputs, std::int64_t rows, const float* x,
                   float* out) {
  for (std::int64_t k = 0; k < inputs; k += kInner) {
    tile_product(rows, kLane, std::min(kInner, inputs - k), {weight + k, inputs, 1}, x + k * kLane,
                 kLane, out, kLane, /*add=*/k > 0);
  }
}

void product(const float* weight, Panels& x, Panels& out) {
  for (std::int64_t row = 0; row < out.features; row += kStrip) {
    for (std::int64_t p = 0; p < x.count; ++p) {
      strip_product(weight + row * x.features, x.features, std::min(kStrip, out.features - row),
                    x.at(p), out.at(p, row));
    }
  }
}

// Calls block(first token, tokens) for runs of up to kTokens tokens on all threads.
template <typename Block>
void for_each_run(std::int64_t tokens, Block&& block) {
  const std::int64_t runs = (tokens + kTokens - 1) / kTokens;
  at::parallel_for(0, runs, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t run = begin; run < end; ++run)
      block(run * kTokens, std::min(kTokens, tokens - run * kTokens));
  });
}

const float* rows_of(const at::Tensor& x, std::int64_t row) {
  return x.defined() ? x.const_data_ptr<float>() + row * x.size(1) : nullptr;
}

}  // namespace

at::Tensor cpu_gated_unit(const at::Tensor& x, const at::Tensor& gate_up, const at::Tensor& down,
                          const at::Tensor& residual) {
  const std::int64_t hidden = x.size(1), width = gate_up.size(0) / 2;
  ANTISD_CHECK(x.is_contiguous() && gate_up.is_contiguous() && down.is_contiguous());
  ANTISD_CHECK(!residual.defined() || residual.is_contiguous());
  at::Tensor y = at::empty_like(x);
  for_each_run(x.size(0), [&](std::int64_t first, std::int64_t tokens) {
    Panels inputs = to_panels(rows_of(x, first), tokens, hidden);
    Panels middle(1, width, tokens), outputs(2, hidden, tokens);
    float gate[kStrip * kLane], up[kStrip * kLane];
    const float* weight = gate_up.const_data_ptr<float>();
    for (std::int64_t row = 0; row < width; row += kStrip) {
      const std::int64_t rows = std::min(kStrip, width - row);
      for (std::int64_t p = 0; p < inputs.count; ++p) {
        strip_product(weight + row * hidden, hidden, rows, inputs.at(p), gate);
        strip_product(weight + (width + row) * hidden, hidden, rows, inputs.at(p), up);
        cpu_swiglu(gate, up, rows * kLane, middle.at(p, row));
      }
    }
    product(down.const_data_ptr<float>(), middle, outputs);
    from_panels(outputs, tokens, rows_of(residual, first), y.data_ptr<float>() + first * hidden);
  });
  return y;
}

at::Tensor cpu_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& residual) {
  ANTISD_CHECK(x.is_contiguous() && weight.is_contiguous());
  ANTISD_CHECK(!residual.defined() || residual.is_contiguous());
  at::Tensor y = at::empty({x.size(0), weight.size(0)}, x.options());
  for_each_run(x.size(0), [&](std::int64_t first, std::int64_t tokens) {
    Panels inputs = to_panels(rows_of(x, first), tokens, x.size(1));
    Panels outputs(2, weight.size(0), tokens);
    product(weight.const_data_ptr<float>(), inputs, outputs);
    from_panels(outputs, tokens, rows_of(residual, first),
                y.data_ptr<float>() + first * weight.size(0));
  });
  return y;
}

}  // namespace antisd
