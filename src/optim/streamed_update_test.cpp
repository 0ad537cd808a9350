#include "optim/streamed_update.h"

#include <cstring>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "ops/host_memory.h"

namespace antisd::inline optim {
namespace {

constexpr std::int64_t kLarge = 3 * kUpdateBlock + 1234, kSmall = 77;
constexpr std::int64_t kSmallBegin = 4 * kUpdateBlock;  // the next multiple after the large one

// A block of two parameters whose state may lie on the host.
struct TwoParameters {
  ParameterBlock block;
  at::Tensor values, gradient;
  std::vector<UpdatedElements> elements;

  TwoParameters(at::Device device, Offload offload, at::ScalarType dtype) {
    const std::int64_t all = kSmallBegin + kUpdateBlock;
    const auto wave = [&](double rate) {
      return (at::arange(all, at::kFloat) * rate).sin().to(device);
    };
    values = wave(0.7).to(dtype);
    gradient = wave(1.3).to(dtype);
    const auto state = [&](bool on_host, const at::Tensor& tensor) {
      return on_host ? host_zeros(all, device).copy_(tensor) : tensor.clone();
    };
    if (dtype != at::kFloat) block.masters = state(offload == Offload::kAll, wave(0.7));
    block.first_moments = state(offload != Offload::kNone, wave(0.1));
    block.second_moments = state(offload != Offload::kNone, wave(0.2).square());
    for (const auto& [begin, count] : {std::pair(std::int64_t{0}, kLarge), {kSmallBegin, kSmall}})
      elements.push_back({begin, values.narrow(0, begin, count), gradient.narrow(0, begin, count)});
  }

  std::string bytes() const {
    std::string all;
    for (const at::Tensor& tensor :
         {values, block.masters, block.first_moments, block.second_moments}) {
      if (!tensor.defined()) continue;
      const at::Tensor host = tensor.cpu();
      all.append(static_cast<const char*>(host.const_data_ptr()), host.nbytes());
    }
    return all;
  }
};

// Three steps on the device, and the same in pieces of one, two or all blocks of the update.
void compare_on(at::Device device, at::ScalarType dtype) {
  const auto factors = [](int step) {
    return adamw_factors({.lr = 1e-2}, step, /*gradient_scale=*/0.5);
  };
  const int steps = 3;
  TwoParameters resident(device, Offload::kNone, dtype);
  const std::string before = resident.bytes();
  for (int step = 1; step <= steps; ++step) {
    for (const auto& [begin, values, gradient] : resident.elements) {
      const auto part = [&](const at::Tensor& whole) {
        return whole.defined() ? whole.narrow(0, begin, values.numel()) : at::Tensor();
      };
      const ParameterBlock& block = resident.block;
      adamw_step({values, part(block.masters), gradient, part(block.first_moments),
                  part(block.second_moments)},
                 factors(step));
    }
  }
  EXPECT_NE(resident.bytes(), before);
  for (const Offload offload : {Offload::kMoments, Offload::kAll}) {
    for (const std::int64_t blocks : {1, 2, 8}) {
      TwoParameters own(device, offload, dtype);
      for (int step = 1; step <= steps; ++step) {
        StreamedUpdate streamed(
            {.offload = offload, .device = device, .elements = blocks * kUpdateBlock});
        streamed.update(own.block, own.elements, factors(step));
        streamed.finish();
      }
      EXPECT_TRUE(own.bytes() == resident.bytes())
          << offload_name(offload) << ", pieces of " << blocks << " blocks";
    }
  }
}

TEST(StreamedUpdate, GivesTheBitsOfTheResidentUpdate) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    compare_on(at::kCPU, dtype);
}

#ifdef ANTISD_CUDA
TEST(StreamedUpdate, GivesTheBitsOfTheResidentUpdateOnAGpu) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no GPU";
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kHalf})
    compare_on(at::Device("cuda:0"), dtype);
}
#endif

TEST(HostMemory, AHostThatIsTooSmallIsToldBeforeAnythingIsPinned) {
  constexpr double kGiB = 1 << 30;
  EXPECT_NO_THROW(check_host_memory(60 * kGiB, 64 * kGiB));
  try {
    check_host_memory(91.6 * kGiB, 64 * kGiB);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.message(),
              "optim.offload: masters and moments need 91.60 GiB of host memory, and 64.00 GiB are "
              "free, of which 2 stay for the rest of the program; use \"none\" or \"moments\", "
              "more ranks, or a host, or a container, with more memory");
  }
}

}  // namespace
}  // namespace antisd::inline optim
