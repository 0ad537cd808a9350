// The products of experts, by every GPU code.
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include "ops/optest/op_case.h"
#include "ops/optest/value_checks.h"

#ifdef ANTISD_CUDA
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#endif

namespace antisd::inline ops {
namespace {

OpCase grouped_case(GroupedCode code, std::vector<std::int32_t> ends, std::int64_t in,
                    std::int64_t out) {
  const std::int64_t experts = std::ssize(ends), rows = ends.back();
  std::vector<at::ScalarType> absent = {at::kFloat};
  if (code == GroupedCode::kTorch) absent.push_back(at::kHalf);
  return {fmt::format("grouped_linear {} {}x{} to {}, experts {}",
                      code == GroupedCode::kOwn ? "own" : "torch", rows, in, out, experts),
          {random({rows, in}, 50), random({experts, out, in}, 51)},
          [=](const Tensors& t) {
            return Tensors{grouped_linear(t[0], t[1], integers(ends, t[0]), code)};
          },
          [=](const Tensors& t) {
            Tensors parts;
            std::int64_t begin = 0;
            for (std::int64_t expert = 0; expert < experts; ++expert) {
              parts.push_back(at::mm(t[0].slice(0, begin, ends[expert]), t[1][expert].t()));
              begin = ends[expert];
            }
            return Tensors{at::cat(parts)};
          },
          absent};
}

}  // namespace

// Sizes that are no multiples of a tile, experts without rows, and the tile shapes for few, some
// and many rows an expert.
std::vector<OpCase> grouped_cases(GroupedCode code) {
  std::vector<OpCase> cases = {grouped_case(code, {0, 1, 1, 20, 47}, 72, 136),
                               grouped_case(code, {0, 1, 1}, 64, 48),
                               grouped_case(code, {2, 2, 2, 3, 3, 3, 5, 5}, 64, 80),
                               grouped_case(code, {3, 60, 60, 200}, 768, 200),
                               grouped_case(code, {130, 130, 520}, 264, 768),
                               grouped_case(code, {9, 40}, 2048, 1536),
                               grouped_case(code, {40, 300}, 768, 2048)};
  if (code == GroupedCode::kOwn) {  // rows that are not whole 16 bytes
    cases.push_back(grouped_case(code, {5, 5, 71}, 71, 37));
    cases.push_back(grouped_case(code, {100, 300}, 132, 129));
  }
  return cases;
}

#ifdef ANTISD_CUDA
namespace {

at::Tensor captured_for_other_ends(const at::Tensor& x, const at::Tensor& w,
                                   const at::Tensor& capture_ends, const at::Tensor& ends) {
  const at::NoGradGuard no_grad;
  const c10::cuda::CUDAStreamGuard guard(
      c10::cuda::getStreamFromPool(/*isHighPriority=*/false, x.device().index()));
  guard.original_stream().synchronize();
  at::Tensor seen = capture_ends.clone();
  guard.current_stream().synchronize();
  at::cuda::CUDAGraph graph;
  graph.capture_begin();
  const at::Tensor y = grouped_linear(x, w, seen, GroupedCode::kOwn);
  graph.capture_end();
  seen.copy_(ends);
  graph.replay();
  at::Tensor result = y.clone();
  guard.current_stream().synchronize();
  return result;
}

}  // namespace

double grouped_product_error(const Backend& backend) {
  const auto on_gpu = [&](const at::Tensor& t) { return t.to(backend.dtype).to(backend.device); };
  const at::Tensor x = on_gpu(random({600, 264}, 52)).requires_grad_(true);
  const at::Tensor w = on_gpu(random({4, 72, 264}, 53)).requires_grad_(true);
  const at::Tensor dy = on_gpu(random({600, 72}, 54));
  const at::Tensor ends = integers({3, 3, 590, 600}, x);
  const auto product = [&](const at::Tensor& rows, const at::Tensor& weight) {
    return grouped_linear(rows, weight, ends, GroupedCode::kOwn);
  };
  const at::Tensor y = product(x, w);
  const auto both = torch::autograd::grad({y}, {x, w}, {dy});
  const auto input = torch::autograd::grad({product(x, w.detach())}, {x}, {dy});
  const auto weight = torch::autograd::grad({product(x.detach(), w)}, {w}, {dy});
  const at::Tensor few =
      grouped_linear(x.narrow(0, 0, 9), w, integers({3, 3, 9, 9}, x), GroupedCode::kOwn);
  const at::Tensor captured =
      captured_for_other_ends(x, w, integers({200, 201, 201, 600}, x), ends);
  const bool same = captured.equal(y) && few.equal(y.narrow(0, 0, 9)) && input[0].equal(both[0]) &&
                    weight[0].equal(both[1]) && both[1][1].count_nonzero().item<int>() == 0;
  return same ? 0 : 1e9;
}
#endif

}  // namespace antisd::inline ops
