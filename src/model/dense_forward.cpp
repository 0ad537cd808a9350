#include "model/dense_forward.h"

#include "model/architecture.h"
#include "ops/panels.h"

namespace antisd::inline model {
namespace {

constexpr std::int64_t kRunPanels = 16;  // panels that share one read of the weights

const float* data(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
}

// Consecutive panels, and the tokens in them.
struct Run {
  std::int64_t first_panel, panels, first_token, tokens;
};

class DenseForward {
 public:
  DenseForward(const CausalLm& model, const DenseTokens& tokens)
      : model_(model),
        shape_(model.shape()),
        eps_(static_cast<float>(shape_.norm_eps)),
        tokens_(tokens),
        norm_after_(shape_.architecture->panel_form == PanelForm::kNormsAfter),
        stream_(memory_.panels(shape_.hidden, panel_count(tokens.count))) {
    for (std::int64_t i = 0; i < tokens.count; ++i)
      longest_ = std::max<std::int64_t>(longest_, tokens.positions[i] + 1);
  }

  at::Tensor run(const DenseAttend& attend) {
    const std::int64_t hidden = shape_.hidden, tokens = tokens_.count;
    for_each_run([&](const Run& run) { embed(run); });
    at::Tensor q = at::empty({tokens, shape_.heads, shape_.head_dim}, at::kFloat);
    at::Tensor k = at::empty({tokens, shape_.kv_heads, shape_.head_dim}, at::kFloat);
    at::Tensor v = at::empty_like(k);
    for (std::size_t layer = 0; layer < shape_.layers.size(); ++layer) {
      const LayerInUse here = model_.use_layer(layer);
      const LayerWeights& w = model_.layers()[layer];
      const RopeTable rope = model_.rope(layer, longest_);
      for_each_run([&](const Run& run) {
        attention_inputs(run, w, rope,
                         {q.data_ptr<float>(), k.data_ptr<float>(), v.data_ptr<float>()});
      });
      const at::Tensor mixed = attend(layer, q, k, v);
      if (!mixed.defined()) return {};
      for_each_run([&](const Run& run) { rest_of_layer(run, w, data(mixed)); });
    }
    at::Tensor states = at::empty({tokens, hidden}, at::kFloat);
    for_each_run([&](const Run& run) {
      const Panels x = stream(run);
      panel_norm(x, data(model_.final_norm()), eps_, x);
      store_panels(x, run.tokens, states.data_ptr<float>() + run.first_token * hidden, hidden);
    });
    return states;
  }

 private:
  struct Heads {
    float *q, *k, *v;
  };

  template <typename Body>
  void for_each_run(const Body& body) const {
    const std::int64_t runs = (stream_.count + kRunPanels - 1) / kRunPanels;
    at::parallel_for(0, runs, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t panel = i * kRunPanels, token = panel * kPanelTokens;
        const std::int64_t panels = std::min(kRunPanels, stream_.count - panel);
        body(Run{panel, panels, token, std::min(panels * kPanelTokens, tokens_.count - token)});
      }
    });
  }

  Panels stream(const Run& run) const { return stream_.run(run.first_panel, run.panels); }

  // Thread-local memory, selected by `which`.
  static Panels scratch(int which, std::int64_t features, std::int64_t panels) {
    thread_local PanelBuffer buffers[6];
    return buffers[which].panels(features, panels);
  }

  // Rows of a table as panels, one index per token.
  template <typename Index>
  static void gather(const Run& run, const float* table, std::int64_t width, const Index* index,
                     Panels to) {
    float rows[kPanelTokens * 64];
    for (std::int64_t p = 0; p < to.count; ++p) {
      const std::int64_t token = run.first_token + p * kPanelTokens;
      const std::int64_t count = std::min(kPanelTokens, run.first_token + run.tokens - token);
      for (std::int64_t first = 0; first < width; first += 64) {
        const std::int64_t part = std::min<std::int64_t>(64, width - first);
        for (std::int64_t i = 0; i < count; ++i)
          std::copy_n(table + index[token + i] * width + first, part, rows + i * 64);
        load_panels(rows, 64, count, to.run(p, 1).rows(first, part));
      }
    }
  }

  void embed(const Run& run) const {
    gather(run, data(model_.embedding()), shape_.hidden, tokens_.ids, stream(run));
  }

  void attention_inputs(const Run& run, const LayerWeights& w, const RopeTable& rope,
                        const Heads& out) const {
    const std::int64_t dim = shape_.head_dim, q_width = shape_.heads * dim,
                       kv_width = shape_.kv_heads * dim;
    Panels x = stream(run);
    if (!norm_after_) {
      const Panels normed = scratch(0, shape_.hidden, run.panels);
      panel_norm(x, data(w.first_norm), eps_, normed);
      x = normed;
    }
    const Panels qkv = scratch(1, q_width + 2 * kv_width, run.panels);
    product(w.qkv, x, qkv, /*add=*/false);
    const Panels q = qkv.rows(0, q_width), k = qkv.rows(q_width, kv_width),
                 v = qkv.rows(q_width + kv_width, kv_width);
    if (w.q_norm.defined()) {  // over a head, or over the whole projection
      panel_norm_heads(q, data(w.q_norm), w.q_norm.numel(), eps_);
      panel_norm_heads(k, data(w.k_norm), w.k_norm.numel(), eps_);
    }
    const Panels cosine = scratch(2, dim / 2, run.panels), sine = scratch(3, dim / 2, run.panels);
    gather(run, data(rope.cosine), dim / 2, tokens_.positions, cosine);
    gather(run, data(rope.sine), dim / 2, tokens_.positions, sine);
    panel_rotate(qkv.rows(0, q_width + kv_width), dim, cosine, sine);
    store_panels(q, run.tokens, out.q + run.first_token * q_width, q_width);
    store_panels(k, run.tokens, out.k + run.first_token * kv_width, kv_width);
    store_panels(v, run.tokens, out.v + run.first_token * kv_width, kv_width);
  }

  void rest_of_layer(const Run& run, const LayerWeights& w, const float* mixed) const {
    const std::int64_t width = shape_.heads * shape_.head_dim;
    const Panels x = stream(run), attended = scratch(0, width, run.panels);
    load_panels(mixed + run.first_token * width, width, run.tokens, attended);
    add_product(w.output, attended, w.first_norm, x);
    Panels normed = x;
    if (!norm_after_) {
      normed = scratch(1, shape_.hidden, run.panels);
      panel_norm(x, data(w.second_norm), eps_, normed);
    }
    const Panels middle = scratch(2, shape_.intermediate, run.panels);
    gated_product(w.gate_up, normed, middle);
    add_product(w.down, middle, w.second_norm, x);
  }

  static void product(const Linear& linear, Panels x, Panels y, bool add) {
    panel_product(data(linear.weight), data(linear.bias), x, y, add);
    if (linear.adapter) add_adapter(*linear.adapter, x, y);
  }

  static void add_adapter(const LoraWeights& lora, Panels x, Panels y) {
    const std::int64_t rank = lora.rank();
    const Panels z = scratch(4, lora.a.size(0), x.count);
    panel_product(data(lora.a), nullptr, x, z, /*add=*/false);
    panel_scale(z, static_cast<float>(lora.scale));
    std::int64_t z_at = 0, b_at = 0;
    for (const LoraPart& part : lora.parts) {
      panel_product(data(lora.b) + b_at * rank, nullptr, z.rows(z_at, rank),
                    y.rows(part.first_row, part.rows), /*add=*/true);
      z_at += rank;
      b_at += part.rows;
    }
  }

  static void gated_product(const Linear& gate_up, Panels x, Panels y) {
    if (!gate_up.adapter)
      return panel_gated_product(data(gate_up.weight), data(gate_up.bias), x, y);
    const Panels both = scratch(5, 2 * y.features, x.count);
    product(gate_up, x, both, /*add=*/false);
    panel_gate(both.rows(0, y.features), both.rows(y.features, y.features), y);
  }

  // x += weight y + bias; with norms after, the product is normed before it is added.
  void add_product(const Linear& linear, Panels y, const at::Tensor& norm, Panels x) const {
    if (!norm_after_) return product(linear, y, x, /*add=*/true);
    const Panels sum = scratch(3, shape_.hidden, y.count);
    product(linear, y, sum, /*add=*/false);
    panel_norm(sum, data(norm), eps_, sum);
    panel_add(sum, x);
  }

  const CausalLm& model_;
  const ModelShape& shape_;
  const float eps_;
  const DenseTokens& tokens_;
  const bool norm_after_;
  PanelBuffer memory_;
  const Panels stream_;  // [hidden] of all tokens
  std::int64_t longest_ = 0;
};

}  // namespace

bool suits_dense_forward(const CausalLm& model) {
  if (!model.device().is_cpu() || model.dtype() != at::kFloat) return false;
  if (!model.shape().architecture->panel_form || model.shape().base) return false;
  const auto& layers = model.shape().layers;
  return std::none_of(layers.begin(), layers.end(),
                      [](const LayerShape& layer) { return layer.sparse; });
}

at::Tensor dense_forward(const CausalLm& model, const DenseTokens& tokens,
                         const DenseAttend& attend) {
  return DenseForward(model, tokens).run(attend);
}

}  // namespace antisd::inline model
