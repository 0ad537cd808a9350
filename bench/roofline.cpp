#ifdef ANTISD_TORCH

#include "bench/roofline.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "bench/clock.h"
#include "bench/workload.h"
#include "inference/kv_pool.h"

namespace antisd::bench {
namespace {

double product_rate(at::Device device, at::ScalarType dtype) {
  const std::int64_t n = device.is_cuda() ? 8192 : 512;
  const auto side = static_cast<double>(n);
  const at::Tensor a = at::ones({n, n}, at::kFloat).to(device, dtype);
  return 2 * side * side * side / best_time(device, false, 4, [&] { at::mm(a, a); });
}

// Keys of a prompt that the queries behind it see in a layer, together.
double prompt_keys(std::int64_t window, std::int64_t prompt, std::int64_t queries) {
  double keys = 0;
  for (std::int64_t t = 0; t < queries; ++t) {
    const std::int64_t first = window > 0 ? std::max<std::int64_t>(0, prompt + t + 1 - window) : 0;
    keys += static_cast<double>(std::max<std::int64_t>(0, prompt - first));
  }
  return keys;
}

// Token t of a sample is computed by a query that sees the prompt and what is before it.
void add_attention(const ModelShape& shape, std::int64_t prompt,
                   const std::vector<std::int64_t>& lengths, double layer_token_bytes,
                   Roofline& roofline) {
  const std::int64_t longest = std::ranges::max(lengths);
  for (const LayerShape& layer : shape.layers) {
    double all = 0, own = 0;
    for (const std::int64_t length : lengths) {
      all += visible_keys(layer.window, prompt, prompt + length);
      own += visible_keys(layer.window, 0, length);
    }
    const double flops = 4 * static_cast<double>(shape.heads * shape.head_dim) * all;
    roofline.attention.flops += flops;
    roofline.attention_rows.flops += flops;
    roofline.attention.bytes +=
        layer_token_bytes * (own + prompt_keys(layer.window, prompt, longest));
    roofline.attention_rows.bytes += layer_token_bytes * all;
  }
}

std::string part_text(const char* name, const Roofline::Part& part, std::int64_t steps) {
  return fmt::format("{} {:.3f} ms ({})", name, part.seconds * 1e3 / static_cast<double>(steps),
                     part.bound_by_flops ? "flops" : "bytes");
}

}  // namespace

Roofline find_roofline(const CausalLm& model, std::int64_t prompt,
                       const std::vector<std::vector<std::int64_t>>& lengths, std::int64_t steps,
                       double bandwidth) {
  const ModelShape& shape = model.shape();
  Roofline roofline{.rate = product_rate(model.device(), model.dtype())};
  const double layer_token_bytes = static_cast<double>(KvPool::page_bytes(model)) / kPageTokens /
                                   static_cast<double>(shape.layers.size());
  double tokens = 0;
  for (const std::vector<std::int64_t>& group : lengths) {
    add_attention(shape, prompt, group, layer_token_bytes, roofline);
    for (const std::int64_t length : group)
      tokens += static_cast<double>(length);
  }
  // The embedding is looked up; where it is tied it is the head.
  const at::Tensor& head = model.head().weight;
  const double matrices = shape.tied_head ? 1 : 2;
  double weights = 0;
  for (const Parameter& parameter : model.parameters())
    weights += static_cast<double>(parameter.bytes());
  roofline.products.bytes =
      (weights - matrices * static_cast<double>(head.nbytes())) * static_cast<double>(steps);
  roofline.products.flops = 2 * tokens *
                            (static_cast<double>(shape.active_parameter_count()) -
                             matrices * static_cast<double>(head.numel()));
  roofline.head.bytes = static_cast<double>(head.nbytes()) * static_cast<double>(steps);
  roofline.head.flops = 2 * tokens * static_cast<double>(head.numel());
  for (Roofline::Part* part :
       {&roofline.products, &roofline.head, &roofline.attention, &roofline.attention_rows}) {
    const double by_bytes = part->bytes / bandwidth, by_flops = part->flops / roofline.rate;
    part->seconds = std::max(by_bytes, by_flops);
    part->bound_by_flops = by_flops > by_bytes;
  }
  return roofline;
}

Json to_json(const Roofline& roofline, std::int64_t steps, double seconds) {
  const auto ms = [&](const Roofline::Part& part) {
    return part.seconds * 1e3 / static_cast<double>(steps);
  };
  return {{"products_ms", ms(roofline.products)},
          {"head_ms", ms(roofline.head)},
          {"attention_ms", ms(roofline.attention)},
          {"attention_by_row_ms", ms(roofline.attention_rows)},
          {"decode_share", roofline.seconds() / seconds},
          {"decode_share_by_row", roofline.seconds_by_row() / seconds}};
}

void print_roofline(const Roofline& roofline, std::int64_t steps, double seconds) {
  fmt::print("  roofline of a step at {:.2f} TFLOP/s: {}, {}, {}; {:.1f} % of it reached\n",
             roofline.rate / 1e12, part_text("products", roofline.products, steps),
             part_text("head", roofline.head, steps),
             part_text("attention", roofline.attention, steps), 100 * roofline.seconds() / seconds);
  fmt::print("  where each row reads its prompt: {}; {:.1f} %\n",
             part_text("attention", roofline.attention_rows, steps),
             100 * roofline.seconds_by_row() / seconds);
}

}  // namespace antisd::bench

#endif
