#include "ops/tensor_errors.h"

#include <gmock/gmock.h>

#include "core/testing.h"

namespace antisd::inline ops {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(TensorErrors, AGpuOutOfMemorySaysHowMuchAndWhatToLower) {
  const auto out_of_memory = [](const char* text) {
    return error_of([&] {
      with_tensor_errors([&] { throw c10::OutOfMemoryError({__func__, __FILE__, 1}, text); });
    });
  };
  // In the wording of the library's allocator.
  EXPECT_THAT(
      out_of_memory(
          "CUDA out of memory. Tried to allocate 18.55 GiB. GPU 0 has a total capacity of "
          "139.80 GiB of which 3.02 GiB is free. Including non-PyTorch memory, this "
          "process has 136.77 GiB memory in use. Of the allocated memory 130.00 GiB is "
          "allocated by PyTorch. See documentation for Memory Management."),
      AllOf(StartsWith("GPU 0 is out of memory: 18.55 GiB were requested, 3.02 GiB of 139.80 GiB "
                       "are free; "),
            HasSubstr("fewer tokens"), Not(HasSubstr("PyTorch"))));
  EXPECT_THAT(out_of_memory("CUDA out of memory in other words"),
              StartsWith("the GPU is out of memory; put fewer tokens into a batch"));
}

TEST(TensorErrors, TheHostOutOfMemoryDoesToo) {
  // More than a 64-bit address space, so that no system grants it.
  const std::string message =
      error_of([] { with_tensor_errors([] { at::empty({std::int64_t{1} << 60}, at::kFloat); }); });
  EXPECT_THAT(message, AllOf(StartsWith("out of memory: 4294967296.00 GiB were requested, "),
                             HasSubstr("GiB are free; put fewer tokens")));
}

TEST(TensorErrors, OthersAreOneLineWithoutAStackTrace) {
  const std::string message = error_of([] {
    with_tensor_errors([] { at::mm(at::ones({2, 3}), at::ones({2, 3})); });
  });
  EXPECT_THAT(message, AllOf(StartsWith("the tensor library failed: mat1 and mat2 shapes cannot be "
                                        "multiplied"),
                             Not(HasSubstr("\n")), Not(HasSubstr("frame #"))));
}

TEST(TensorErrors, OurOwnPass) {
  EXPECT_THAT(error_of([] { with_tensor_errors([] { throw InputError("bad row"); }); }), "bad row");
  EXPECT_THROW(with_tensor_errors([] { throw std::out_of_range("ours"); }), std::out_of_range);
}

// For any allocation, not only of a tensor, so that the run is saved as after other errors.
TEST(TensorErrors, MemoryThatIsNotToBeHadIsAnError) {
  EXPECT_THAT(error_of([] { with_tensor_errors([] { throw std::bad_alloc(); }); }),
              StartsWith("out of memory; "));
}

}  // namespace
}  // namespace antisd::inline ops
