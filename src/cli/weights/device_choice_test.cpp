#include "cli/weights/device_choice.h"

#include <gmock/gmock.h>

#include "core/testing.h"

namespace antisd::inline cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(DeviceChoice, OfARank) {
  struct Case {
    const char* requested;
    int local_rank, visible;
    const char* device;
  };
  const Case cases[] = {
      {"auto", 0, 0, "cpu"},
      {"auto", 3, 0, "cpu"},
      {"auto", 0, 1, "cuda:0"},
      {"auto", 3, 4, "cuda:3"},
      {"cuda", 0, 8, "cuda:0"},
      {"cuda", 7, 8, "cuda:7"},
      {"cpu", 2, 8, "cpu"},
      // Several ranks share a GPU where that is asked for.
      {"cuda:0", 3, 1, "cuda:0"},
      // Absent, which choose_device says.
      {"cuda:1", 0, 1, "cuda:1"},
      {"cuda", 0, 0, "cuda:0"},
  };
  for (const Case& c : cases)
    EXPECT_EQ(device_of_rank(c.requested, c.local_rank, c.visible), c.device)
        << c.requested << " " << c.local_rank << " " << c.visible;
  for (const char* requested : {"auto", "cuda"})
    EXPECT_THAT(testing::error_of([&] { device_of_rank(requested, 2, 2); }),
                AllOf(HasSubstr("rank 2 of this node has no GPU: it sees 2"),
                      HasSubstr("--processes gpus"), HasSubstr("--device cuda:0")));
}

TEST(DeviceChoice, NamesAnAbsentDevice) {
  EXPECT_EQ(choose_device("cpu", 5), at::Device(at::kCPU));
  EXPECT_THAT(testing::error_of([] { choose_device("cuda:99"); }),
              HasSubstr("there is no device 'cuda:99'"));
}

}  // namespace
}  // namespace antisd::inline cli
