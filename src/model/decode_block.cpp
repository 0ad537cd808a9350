#include "model/decode_block.h"

#include <cstring>

#include "core/check.h"
#include "ops/blas.h"
#include "ops/cpu_decode_rows.h"

namespace antisd {
namespace {

const float* data(const at::Tensor& tensor) {
  return tensor.const_data_ptr<float>();
}

// y [rows, out] = x [rows, in] weight^T (+ bias) (+ y where `add`).
void project(const float* x, const at::Tensor& weight, const at::Tensor& bias, std::int64_t rows,
             bool add, float* y) {
  const std::int64_t out = weight.size(0), in = weight.size(1);
  matrix_product(Transpose::kNo, Transpose::kYes, rows, out, in, 1, x, in, data(weight), in,
                 add ? 1.0f : 0.0f, y, out);
  if (!bias.defined()) return;
  for (std::int64_t row = 0; row < rows; ++row)
    add_row(data(bias), out, y + row * out);
}

void norm_rows(const float* x, const at::Tensor& weight, std::int64_t rows, double eps, float* y) {
  const std::int64_t width = weight.numel();
  for (std::int64_t row = 0; row < rows; ++row)
    rms_norm_row(x + row * width, data(weight), width, static_cast<float>(eps), y + row * width);
}

struct Scratch {
  std::vector<float> normed, qkv, mixed, gate_up;

  void fit(const ModelShape& shape, std::int64_t rows) {
    normed.resize(rows * shape.hidden);
    qkv.resize(rows * (shape.heads + 2 * shape.kv_heads) * shape.head_dim);
    mixed.resize(rows * std::max(shape.heads * shape.head_dim, shape.intermediate));
    gate_up.resize(rows * 2 * shape.intermediate);
  }
};

class Block {
 public:
  Block(const CausalLm& model, const KvView& cache, const DecodeRows& in, Scratch& scratch)
      : model_(model), shape_(model.shape()), cache_(cache), in_(in), scratch_(scratch) {
    for (std::int64_t row = 0; row < in.rows; ++row)
      longest_ = std::max<std::int64_t>(longest_, in.positions[row] + 1);
  }

  void run(float* x) {
    const std::int64_t hidden = shape_.hidden;
    for (std::int64_t row = 0; row < in_.rows; ++row)
      std::memcpy(x + row * hidden, data(model_.embedding()) + in_.ids[row] * hidden,
                  hidden * sizeof(float));
    const bool norm_after = shape_.architecture == Architecture::kOlmo3;
    for (std::size_t layer = 0; layer < shape_.layers.size(); ++layer)
      norm_after ? run_norm_after(layer, x) : run_norm_before(layer, x);
    norm_rows(x, model_.final_norm(), in_.rows, shape_.norm_eps, x);
  }

 private:
  void run_norm_before(std::size_t layer, float* x) {
    const LayerWeights& w = model_.layers()[layer];
    norm_rows(x, w.first_norm, in_.rows, shape_.norm_eps, scratch_.normed.data());
    attention(layer, scratch_.normed.data());
    project(scratch_.mixed.data(), w.output, w.output_bias, in_.rows, /*add=*/true, x);
    norm_rows(x, w.second_norm, in_.rows, shape_.norm_eps, scratch_.normed.data());
    gate(w, scratch_.normed.data());
    project(scratch_.mixed.data(), w.down, w.down_bias, in_.rows, /*add=*/true, x);
  }

  void run_norm_after(std::size_t layer, float* x) {
    const LayerWeights& w = model_.layers()[layer];
    float* y = scratch_.normed.data();
    const auto add_normed = [&](const at::Tensor& weight) {
      norm_rows(y, weight, in_.rows, shape_.norm_eps, y);
      add_row(y, in_.rows * shape_.hidden, x);
    };
    attention(layer, x);
    project(scratch_.mixed.data(), w.output, w.output_bias, in_.rows, /*add=*/false, y);
    add_normed(w.first_norm);
    gate(w, x);
    project(scratch_.mixed.data(), w.down, w.down_bias, in_.rows, /*add=*/false, y);
    add_normed(w.second_norm);
  }

  // x [rows, hidden] -> scratch mixed [rows, heads * head_dim]
  void attention(std::size_t layer, const float* x) {
    const LayerWeights& w = model_.layers()[layer];
    const std::int64_t dim = shape_.head_dim, q_width = shape_.heads * dim,
                       kv_width = shape_.kv_heads * dim, width = q_width + 2 * kv_width;
    project(x, w.qkv, w.qkv_bias, in_.rows, /*add=*/false, scratch_.qkv.data());
    const RopeTable& rope = model_.rope(layer, longest_);
    float* keys = cache_[layer].keys.data_ptr<float>();
    float* values = cache_[layer].values.data_ptr<float>();
    const PagedRows pages{keys,
                          values,
                          shape_.heads,
                          shape_.kv_heads,
                          dim,
                          shape_.layers[layer].window,
                          1.0f / std::sqrt(static_cast<float>(dim))};
    for (std::int64_t row = 0; row < in_.rows; ++row) {
      float *q = scratch_.qkv.data() + row * width, *k = q + q_width, *v = k + kv_width;
      norm_heads(q, w.q_norm, q_width);
      norm_heads(k, w.k_norm, kv_width);
      const std::int64_t position = in_.positions[row], angle = position * (dim / 2);
      rotate_row(q, shape_.heads + shape_.kv_heads, dim, data(rope.cosine) + angle,
                 data(rope.sine) + angle);
      std::memcpy(keys + in_.slots[row] * kv_width, k, kv_width * sizeof(float));
      std::memcpy(values + in_.slots[row] * kv_width, v, kv_width * sizeof(float));
      attend_row(pages, q, in_.pages + row * in_.most_pages, position + 1,
                 scratch_.mixed.data() + row * q_width);
    }
  }

  // A weight of one head's width norms head by head, a wider one the whole projection.
  void norm_heads(float* x, const at::Tensor& weight, std::int64_t width) {
    if (!weight.defined()) return;
    const std::int64_t step = weight.numel();
    for (std::int64_t at = 0; at < width; at += step)
      rms_norm_row(x + at, data(weight), step, static_cast<float>(shape_.norm_eps), x + at);
  }

  // x [rows, hidden] -> scratch mixed [rows, intermediate]
  void gate(const LayerWeights& w, const float* x) {
    project(x, w.gate_up, w.gate_up_bias, in_.rows, /*add=*/false, scratch_.gate_up.data());
    for (std::int64_t row = 0; row < in_.rows; ++row)
      gate_row(scratch_.gate_up.data() + row * 2 * shape_.intermediate, shape_.intermediate,
               scratch_.mixed.data() + row * shape_.intermediate);
  }

  const CausalLm& model_;
  const ModelShape& shape_;
  const KvView& cache_;
  const DecodeRows& in_;
  Scratch& scratch_;
  std::int64_t longest_ = 0;
};

}  // namespace

void decode_block(const CausalLm& model, const KvView& cache, const DecodeRows& in, float* states) {
  thread_local Scratch scratch;
  scratch.fit(model.shape(), in.rows);
  Block(model, cache, in, scratch).run(states);
}

}  // namespace antisd
