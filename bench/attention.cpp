#ifdef ANTISD_TORCH

#include "ops/attention.h"

#include <cmath>
#include <functional>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include "bench/benchmarks.h"
#include "bench/clock.h"
#include "bench/options.h"
#include "model/causal_lm.h"
#include "model/packed_batch.h"

namespace antisd::bench {
namespace {

struct AttentionOptions {
  std::string device = "cpu", dtype = "auto";
  std::int64_t heads = 16, kv_heads = 8, head_dim = 128, divisor = 1;
  int repeats = 5;
};

struct AttentionBatch {
  std::string name;
  std::vector<std::int64_t> lengths;
  std::int64_t prefix = 0, window = 0;
};

std::vector<AttentionBatch> attention_batches(std::int64_t divisor) {
  const auto lengths = [&](std::vector<std::int64_t> all) {
    for (std::int64_t& length : all)
      length = std::max<std::int64_t>(1, length / divisor);
    return all;
  };
  const auto equal = [&](std::size_t count, std::int64_t length) {
    return lengths(std::vector<std::int64_t>(count, length));
  };
  return {
      {"8 x 2,048", equal(8, 2048)},
      {"8 x 2,047", equal(8, 2047)},
      {"2 x 16,384", equal(2, 16'384)},
      {"2 x 16,383", equal(2, 16'383)},
      {"1 x 32,768", equal(1, 32'768)},
      {"1 x 32,767", equal(1, 32'767)},
      {"1 x 40,001", equal(1, 40'001)},
      {"8 of 947 to 14,011", lengths({14011, 7003, 4001, 2503, 1801, 1399, 1103, 947})},
      {"16 of 221 to 9,001", lengths({9001, 5003, 3501, 2803, 2203, 1801, 1501, 1301, 1103, 1009,
                                      907, 809, 701, 503, 401, 221})},
      {"64 of 30 to 471",
       [&] {
         std::vector<std::int64_t> all;
         for (std::int64_t i = 0; i < 64; ++i)
           all.push_back(30 + i * 7);
         return lengths(all);
       }()},
      {"8 x 3,584 behind 1,024", equal(8, 3584), 1024 / divisor},
      {"1 x 32,767, window 4,096", equal(1, 32'767), 0, std::max<std::int64_t>(1, 4096 / divisor)}};
}

// As pack() lays them out: a prefix once, before the sequences that continue it.
PackedBatch packed(const AttentionBatch& batch, at::Device device) {
  std::vector<std::vector<std::int32_t>> sequences;
  for (std::size_t i = 0; i < batch.lengths.size(); ++i) {
    sequences.emplace_back(batch.prefix, 0);
    sequences.back().resize(static_cast<std::size_t>(batch.prefix + batch.lengths[i]),
                            static_cast<std::int32_t>(i) + 1);
  }
  return pack(sequences, device, {.share = batch.prefix > 0});
}

// Queries times the keys that each sees.
double pairs_of(const AttentionLayout& layout, std::int64_t window) {
  double pairs = 0;
  for (std::size_t i = 0; i + 1 < layout.query_offsets.size(); ++i) {
    const std::int64_t queries = layout.query_offsets[i + 1] - layout.query_offsets[i];
    const std::int64_t keys = layout.key_offsets[i + 1] - layout.key_offsets[i];
    for (std::int64_t q = 0; q < queries; ++q) {
      const std::int64_t seen = keys - queries + q + 1;
      pairs += static_cast<double>(window > 0 ? std::min(seen, window) : seen);
    }
  }
  return pairs;
}

class AttentionBench {
 public:
  AttentionBench(const AttentionOptions& options, const AttentionBatch& batch)
      : options_(options),
        batch_(batch),
        device_(options.device),
        packed_(packed(batch, device_)),
        scale_(1 / std::sqrt(static_cast<double>(options.head_dim))) {
    q_ = random(options.heads);
    k_ = random(options.kv_heads);
    v_ = random(options.kv_heads);
    gradient_ = random(options.heads).detach();
    flop_ = 4.0 * static_cast<double>(options.heads * options.head_dim) *
            pairs_of(packed_.layout, batch.window);
  }

  void print() {
    print_code("chosen", AttentionCode::kChosen, SumOrder::kAny);
    print_code("chosen, fixed order", AttentionCode::kChosen, SumOrder::kFixed);
    if (!device_.is_cuda()) return;
    print_code("flash attention", AttentionCode::kPacked, SumOrder::kAny);
    print_code("ragged", AttentionCode::kRagged, SumOrder::kAny);
  }

 private:
  at::Tensor random(std::int64_t heads) const {
    return at::randn({packed_.tokens(), heads, options_.head_dim}, at::device(device_))
        .to(compute_dtype(device_, options_.dtype))
        .requires_grad_(true);
  }

  double seconds(const std::function<void()>& work) const {
    return best_time(device_, /*processor_time=*/false, options_.repeats, work);
  }

  at::Tensor compute(AttentionCode code, SumOrder sums, Gradients gradients) const {
    AttentionLayout layout = packed_.layout;
    layout.sums = sums;
    return attention(q_, k_, v_, layout, batch_.window, scale_, gradients, nullptr, code);
  }

  // Backward is counted as two and a half times forward: five products instead of two.
  void print_line(const std::string& name, double forward, double backward) const {
    const auto rate = [](double flop, double seconds) { return flop / seconds / 1e12; };
    fmt::print("{:<26} {:<20} forward {:8.3f} ms {:6.1f} TFLOP/s, backward {:8.3f} ms {:6.1f}\n",
               batch_.name, name, 1e3 * forward, rate(flop_, forward), 1e3 * backward,
               rate(2.5 * flop_, backward));
  }

  void print_code(const std::string& name, AttentionCode code, SumOrder sums) const {
    const double forward = seconds([&] { compute(code, sums, Gradients::kNone); });
    const at::Tensor out = compute(code, sums, Gradients::kRecorded);
    const double backward = seconds([&] {
      torch::autograd::grad({out}, {q_, k_, v_}, {gradient_}, /*retain_graph=*/true);
    });
    print_line(name, forward, backward);
  }

  const AttentionOptions& options_;
  const AttentionBatch& batch_;
  at::Device device_;
  PackedBatch packed_;
  double scale_, flop_ = 0;
  at::Tensor q_, k_, v_, gradient_;
};

}  // namespace

int run_attention(const Arguments& arguments) {
  AttentionOptions options;
  CLI::App app("attention over packed sequences, forward and backward", "antisd-bench attention");
  add_choice(app, "--device", options.device, {"cpu", "cuda"});
  add_dtype_option(app, options.dtype);
  add_number(app, "--heads", options.heads, 1, 256);
  add_number(app, "--kv-heads", options.kv_heads, 1, 256);
  add_number(app, "--head-dim", options.head_dim, 8, 256);
  add_number(app, "--divisor", options.divisor, 1, 1024, "of all lengths, for a slow device");
  add_number(app, "--repeats", options.repeats, 1, 1000);
  if (const auto status = parse(app, arguments)) return *status;
  for (const AttentionBatch& batch : attention_batches(options.divisor))
    AttentionBench(options, batch).print();
  return 0;
}

}  // namespace antisd::bench

#endif
