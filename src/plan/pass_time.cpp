#include "plan/pass_time.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace antisd::inline plan {
namespace {

constexpr std::int64_t kEvenTokens = 256;  // of which cuDNN's lengths are multiples

// Keys that queries [begin, end) see, at most `window` each.
double keys_seen(std::int64_t begin, std::int64_t end, std::int64_t window) {
  const double b = static_cast<double>(begin), e = static_cast<double>(end);
  const double w = window > 0 ? static_cast<double>(window) : std::numeric_limits<double>::max();
  const double full_from = std::clamp(w, b, e);  // from here on a query sees a whole window
  const double growing = (full_from * (full_from + 1) - b * (b + 1)) / 2;
  return growing + (e > full_from ? (e - full_from) * w : 0);
}

}  // namespace

PassTime::PassTime(const ModelShape& shape, const Rates& rates) : rates_(rates) {
  const double hidden = static_cast<double>(shape.hidden);
  const double queries = static_cast<double>(shape.heads * shape.head_dim);
  const double keys = static_cast<double>(shape.kv_heads * shape.head_dim);
  const double experts = static_cast<double>(shape.experts);
  const double chosen = static_cast<double>(shape.experts_per_token);
  for (const LayerShape& layer : shape.layers) {
    const double attention = hidden * (2 * queries + 2 * keys);
    const double unit =
        hidden * static_cast<double>(layer.sparse ? shape.expert_intermediate : shape.intermediate);
    const double units = layer.sparse ? chosen * static_cast<double>(shape.expert_intermediate)
                                      : static_cast<double>(shape.intermediate);
    const double router = layer.sparse ? hidden * experts : 0;
    // Two norms of the fp32 stream, two additions to it; queries and keys normed and rotated; the
    // gated product.
    const double bytes =
        24 * hidden + 2 * kElementBytes * (queries + keys) + 3 * kElementBytes * units;
    const double routed = layer.sparse ? chosen * hidden : 0;
    forward_.dense += 2 * (attention + router + (layer.sparse ? 0 : 3 * unit));
    forward_.experts += layer.sparse ? 2 * chosen * 3 * unit : 0;
    forward_.bytes += bytes;
    forward_.routed += routed;
    recomputed_.dense += 2 * (attention + router + (layer.sparse ? 0 : 2 * unit));
    recomputed_.experts += layer.sparse ? 2 * chosen * 2 * unit : 0;
    recomputed_.bytes += bytes;
    recomputed_.routed += routed;
    dense_bytes_ += kElementBytes * (attention + router + (layer.sparse ? 0 : 3 * unit));
    expert_bytes_ += layer.sparse ? kElementBytes * experts * 3 * unit : 0;
    windows_[layer.window] += 1;
  }
  layers_ = static_cast<double>(shape.layers.size());
  logits_ = static_cast<double>(shape.vocabulary);
  head_flops_ = 2 * logits_ * hidden;
  dense_bytes_ += kElementBytes * logits_ * hidden;
  head_dim_flops_ = 4 * queries;
  routed_share_ = experts > 0 ? chosen / experts : 0;
  kv_layer_ = 2 * kElementBytes * keys;
  kv_stored_ = layers_ * kv_layer_;
}

double PassTime::TokenCost::seconds(const Rates& rates) const {
  return (dense + rates.experts * experts) / rates.products + bytes / rates.elementwise +
         routed * rates.routed;
}

double PassTime::attention_flops(std::int64_t begin, std::int64_t end) const {
  double seen = 0;
  for (const auto& [window, layers] : windows_)
    seen += layers * keys_seen(begin, end, window);
  return head_dim_flops_ * seen;
}

PassWork PassTime::work_of(std::span<const PassSequence> sequences) const {
  PassWork work{.even = !sequences.empty()};
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const PassSequence& sequence = sequences[i];
    const std::int64_t shared = i > 0 ? sequence.shared : 0;  // with its own pass alone
    work.tokens += static_cast<double>(sequence.tokens - shared);
    work.targets += static_cast<double>(sequence.targets);
    work.attention += attention_flops(shared, sequence.tokens);
    if (shared > 0 || sequence.tokens % kEvenTokens != 0 || sequence.tokens != sequences[0].tokens)
      work.even = false;
  }
  return work;
}

double PassTime::forward(const PassWork& work) const {
  return work.tokens * forward_.seconds(rates_) +
         work.attention / (work.even ? rates_.attention_even : rates_.attention);
}

double PassTime::head(const PassWork& work) const {
  return work.targets * (head_flops_ / rates_.head_forward + logits_ * rates_.logit);
}

double PassTime::backward(const PassWork& work, double recomputed) const {
  // Two products for each of the forward pass; five of attention's for its two.
  const double layers =
      work.tokens * (2 * forward_.seconds(rates_) + recomputed * recomputed_.seconds(rates_));
  const double attention = 2.5 * work.attention /
                           (work.even ? rates_.attention_even_backward : rates_.attention_backward);
  return layers + attention + work.targets * 3 * head_flops_ / rates_.head_backward;
}

double PassTime::adamw(double elements, double gradient_bytes) const {
  // Master, moments and gradient are read, all but the gradient written with the weight; the
  // gradient once more for its norm.
  const double bytes = 12 + 12 + kElementBytes + 2 * gradient_bytes;
  return rates_.adamw_start + elements * bytes / rates_.adamw;
}

double PassTime::decode_step(double rows, double kv_bytes) const {
  const auto product = [&](double bytes, double flops) {
    return std::max(bytes / rates_.read, flops / rates_.products);
  };
  const double touched = expert_bytes_ * (1 - std::pow(1 - routed_share_, rows));
  return product(dense_bytes_, rows * (forward_.dense + head_flops_)) +
         rates_.experts * product(touched, rows * forward_.experts) + kv_bytes / rates_.read +
         layers_ * rates_.decode_layer;
}

double PassTime::kv_bytes(std::int64_t context) const {
  double tokens = 0;
  for (const auto& [window, layers] : windows_)
    tokens += layers * static_cast<double>(window > 0 ? std::min(window, context) : context);
  return kv_layer_ * tokens;
}

}  // namespace antisd::inline plan
