// Products with quantised weights. The reference computes with the numbers of the format, in
// double; a backend rounds them to its precision.
#include <fmt/format.h>

#include "ops/experts.h"
#include "ops/optest/op_case.h"
#include "ops/optest/value_checks.h"
#include "ops/quantized_linear.h"
#include "ops/stream_norm.h"

namespace antisd::inline ops {
namespace {

const char* name_of(QuantizedKind kind) {
  return kind == QuantizedKind::kInt8 ? "int8" : "nf4";
}

QuantizedWeight quantized_on_cpu(QuantizedKind kind, const at::Tensor& values) {
  QuantizedWeight weight = empty_quantized(kind, values.sizes().vec(), at::kCPU);
  quantize_into(values.to(at::kFloat), weight);
  return weight;
}

QuantizedWeight moved_to(const QuantizedWeight& weight, const at::Tensor& like) {
  return {weight.codes.to(like.device()), weight.scales.to(like.device()), weight.columns};
}

at::Tensor in_double(const QuantizedWeight& weight) {
  return dequantize(weight, at::kFloat).to(at::kDouble);
}

// The weight as the op converts it: in the precision that the inputs were rounded to.
at::Tensor as_converted(const QuantizedWeight& weight, const at::Tensor& like) {
  const bool is_bf16 = like.to(at::kBFloat16).to(at::kDouble).equal(like);
  return dequantize(weight, at::kFloat).to(is_bf16 ? at::kBFloat16 : at::kFloat).to(at::kDouble);
}

OpCase quantized_linear_case(QuantizedKind kind, std::int64_t rows, std::int64_t out,
                             std::int64_t in) {
  const QuantizedWeight weight = quantized_on_cpu(kind, random({out, in}, 80, 0.1));
  return {fmt::format("quantized_linear {} {}x{}x{}", name_of(kind), rows, out, in),
          {random({rows, in}, 81), random({out}, 82)},
          [=](const Tensors& t) {
            return Tensors{quantized_linear(t[0], moved_to(weight, t[0]), t[1])};
          },
          [=](const Tensors& t) { return Tensors{at::mm(t[0], in_double(weight).t()) + t[1]}; }};
}

// As a layer adds its last product to the stream, in training and in inference.
OpCase quantized_stream_case(QuantizedKind kind, std::int64_t rows, std::int64_t width,
                             std::int64_t in) {
  const QuantizedWeight weight = quantized_on_cpu(kind, random({width, in}, 83, 0.1));
  return {fmt::format("quantized add_and_norm {} {}x{}x{}", name_of(kind), rows, width, in),
          {random({rows, width}, 84), random({width}, 85), random({rows, in}, 86)},
          [=](const Tensors& t) {
            const QuantizedWeight there = moved_to(weight, t[0]);
            const StreamNorm next =
                add_and_norm(t[0].to(at::kFloat), {t[2], {}, {}, there}, t[1], 1e-6);
            at::Tensor stream = t[0].detach().to(at::kFloat, false, /*copy=*/true);
            add_quantized_product_(stream, t[2].detach(), there);
            return Tensors{next.stream, next.normed, stream};
          },
          [=](const Tensors& t) {
            const at::Tensor stream = t[0] + at::mm(t[2], in_double(weight).t());
            return Tensors{stream, plain_rms_norm(stream, t[1], 1e-6), stream.detach()};
          }};
}

// The numbers of the plain case (layer_cases.cpp), quantised.
OpCase quantized_experts_case(QuantizedKind kind) {
  const std::int64_t tokens = 61, hidden = 64, width = 48, count = 8, k = 2;
  const QuantizedWeight gate_up =
      quantized_on_cpu(kind, random({count, 2 * width, hidden}, 15, 0.2));
  const QuantizedWeight down = quantized_on_cpu(kind, random({count, hidden, width}, 16, 0.2));
  return {fmt::format("quantized experts {}", name_of(kind)),
          {random({tokens, hidden}, 13), random({count, hidden}, 14)},
          [=](const Tensors& t) {
            return Tensors{experts(t[0],
                                   {t[1], {}, {}, moved_to(gate_up, t[0]), moved_to(down, t[0])}, k,
                                   /*normalise=*/true)};
          },
          [=](const Tensors& t) {  // every expert on every token, 0 times where it was not chosen
            const at::Tensor p = at::mm(t[0], t[1].t()).softmax(-1);
            const at::Tensor chosen = at::zeros_like(p).scatter(1, std::get<1>(p.topk(k, -1)), 1.0);
            const at::Tensor weights = p * chosen / (p * chosen).sum(-1, true);
            const at::Tensor first = as_converted(gate_up, t[0].detach()),
                             second = as_converted(down, t[0].detach());
            at::Tensor out = at::zeros_like(t[0]);
            for (std::int64_t e = 0; e < count; ++e) {
              const auto parts = at::mm(t[0], first[e].t()).chunk(2, -1);
              out = out + weights.select(1, e).unsqueeze(1) *
                              at::mm(at::silu(parts[0]) * parts[1], second[e].t());
            }
            return Tensors{out};
          },
          /*not_on_gpu=*/{at::kFloat, at::kHalf}};
}

}  // namespace

std::vector<OpCase> quantized_cases() {
  std::vector<OpCase> cases;
  for (const QuantizedKind kind : {QuantizedKind::kInt8, QuantizedKind::kNf4}) {
    for (const std::int64_t rows : {1, 7, 8, 16, 33, 64, 65, 300})
      cases.push_back(quantized_linear_case(kind, rows, 96, 256));
    cases.push_back(quantized_linear_case(kind, 5, 2560, 9728));
    cases.push_back(quantized_linear_case(kind, 40, 4096, 2560));
    cases.push_back(quantized_linear_case(kind, 3, 33, 70));
    cases.push_back(quantized_linear_case(kind, 9, 17, 1));
    cases.push_back(quantized_linear_case(kind, 9, 48, 200));
    cases.push_back(quantized_stream_case(kind, 6, 1024, 320));
    cases.push_back(quantized_stream_case(kind, 300, 1024, 320));
    cases.push_back(quantized_stream_case(kind, 5, 12, 65));
    cases.push_back(quantized_experts_case(kind));
  }
  return cases;
}

double quantize_error(QuantizedKind kind, std::int64_t columns, const Backend& backend) {
  const at::Tensor values = random({37, columns}, 89).to(backend.dtype);
  const QuantizedWeight expected = quantized_on_cpu(kind, values);
  const QuantizedWeight there = empty_quantized(kind, {37, columns}, backend.device);
  quantize_into(values.to(backend.device), there);
  const bool same = there.codes.to(at::kCPU).equal(expected.codes) &&
                    there.scales.to(at::kCPU).equal(expected.scales) &&
                    dequantize(there, backend.dtype)
                        .to(at::kCPU)
                        .equal(dequantize(expected, at::kFloat).to(backend.dtype));
  return same ? 0 : 1e9;
}

}  // namespace antisd::inline ops
