#include "ops/sampling.h"

#include "core/check.h"
#include "core/error.h"
#include "ops/backend.h"
#include "ops/cpu_sampling.h"

#ifdef ANTISD_CUDA
#include "ops/kernels/sampling.h"
#endif

namespace antisd::inline ops {

void check_sampling(const SamplingSettings& settings) {
  const auto refuse = [](const char* name, double value, const char* remedy) {
    throw InputError(fmt::format("{} is {}", name, value), {.remedy = remedy});
  };
  if (!(settings.temperature >= 0) || !std::isfinite(settings.temperature))
    refuse("the temperature", settings.temperature, "give 0 (greedy) or a positive number");
  if (!(settings.top_p > 0 && settings.top_p <= 1))
    refuse("top-p", settings.top_p, "give a number above 0 and at most 1");
  if (!(settings.min_p >= 0 && settings.min_p <= 1))
    refuse("min-p", settings.min_p, "give a number from 0 to 1");
  if (settings.top_k < 0)
    refuse("top-k", static_cast<double>(settings.top_k), "give 0 (all tokens) or a positive count");
}

SampledTokens sample(const at::Tensor& logits, std::int64_t vocabulary,
                     const SamplingSettings& settings, const at::Tensor& noise) {
  ANTISD_CHECK(logits.dim() == 2 && logits.is_contiguous());
  ANTISD_CHECK(logits.scalar_type() == at::kFloat && noise.scalar_type() == at::kDouble);
  ANTISD_CHECK_EQ(noise.numel(), logits.size(0));
  ANTISD_CHECK(vocabulary > 0 && vocabulary <= logits.size(1));
  const std::int64_t rows = logits.size(0), stride = logits.size(1);
  SampledTokens out{at::empty({rows}, logits.options().dtype(at::kInt)),
                    at::empty({rows}, logits.options()), at::empty({rows}, logits.options())};
#ifdef ANTISD_CUDA
  if (logits.is_cuda()) {
    const SamplingRule rule = {settings.temperature, settings.top_p, settings.min_p,
                               settings.top_k};
    const at::Tensor workspace =
        at::empty({sampling_workspace(rows, vocabulary, rule)}, logits.options().dtype(at::kByte));
    launch_sample(logits.const_data_ptr<float>(), rows, stride, vocabulary, rule,
                  noise.const_data_ptr<double>(), out.ids.mutable_data_ptr<std::int32_t>(),
                  out.logp.mutable_data_ptr<float>(), out.raw_logp.mutable_data_ptr<float>(),
                  workspace.mutable_data_ptr(), current_stream(logits));
    return out;
  }
#endif
  at::parallel_for(0, rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const SampledToken token =
          cpu_sample_row(logits.const_data_ptr<float>() + row * stride, vocabulary, settings,
                         noise.const_data_ptr<double>()[row]);
      out.ids.data_ptr<std::int32_t>()[row] = token.id;
      out.logp.data_ptr<float>()[row] = token.logp;
      out.raw_logp.data_ptr<float>()[row] = token.raw_logp;
    }
  });
  return out;
}

}  // namespace antisd::inline ops
