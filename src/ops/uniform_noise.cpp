#include "ops/uniform_noise.h"

#include <ATen/ops/empty.h>

#include "core/check.h"

#ifdef ANTISD_CUDA
#include <c10/cuda/CUDAStream.h>

#include "ops/kernels/uniform_noise.h"
#endif

namespace antisd::inline ops {
namespace {

void fill_on_cpu(const CounterRng& rng, const std::int32_t* places, std::int64_t rows,
                 double* out) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto word = [&](int i) { return static_cast<std::uint32_t>(places[row * 4 + i]); };
    out[row] =
        rng.uniform({.step = word(3), .prompt = word(2), .sample = word(1), .position = word(0)});
  }
}

}  // namespace

at::Tensor uniform_noise(const CounterRng& rng, const at::Tensor& places) {
  ANTISD_CHECK_EQ(places.dim(), 2);
  ANTISD_CHECK_EQ(places.size(1), 4);
  ANTISD_CHECK(places.scalar_type() == at::kInt && places.is_contiguous());
  const std::int64_t rows = places.size(0);
  at::Tensor out = at::empty({rows}, places.options().dtype(at::kDouble));
  const auto* input = places.const_data_ptr<std::int32_t>();
#ifdef ANTISD_CUDA
  if (places.is_cuda()) {
    launch_uniform_noise(input, rows, rng.key()[0], rng.key()[1], out.mutable_data_ptr<double>(),
                         c10::cuda::getCurrentCUDAStream(places.device().index()).stream());
    return out;
  }
#endif
  ANTISD_CHECK(places.is_cpu());
  fill_on_cpu(rng, input, rows, out.mutable_data_ptr<double>());
  return out;
}

}  // namespace antisd::inline ops
