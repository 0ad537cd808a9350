#include "ops/gpu_problem.h"

#include <gmock/gmock.h>

namespace antisd::inline ops {
namespace {

using ::testing::HasSubstr;

constexpr const char* kAll = "80-real 86-real 89-real 90a-real 100-real 120";

std::string what_of(const std::optional<GpuProblem>& problem) {
  return problem ? problem->what + "; " + problem->remedy : "";
}

TEST(GpuProblem, OfAMachine) {
  GpuMachine machine;
  EXPECT_EQ(what_of(machine_problem(machine)), "");  // no card at all
  machine.has_card = true;
  EXPECT_THAT(what_of(machine_problem(machine)), HasSubstr("no driver for it; install"));
  machine.has_driver = true;
  EXPECT_THAT(what_of(machine_problem(machine)), HasSubstr("make CUDA=1"));
  machine.built_with_cuda = true;
  machine.needed_cuda = 13000;
  machine.driver_cuda = 12040;
  machine.driver_version = "550.54.14";
  EXPECT_THAT(what_of(machine_problem(machine)),
              HasSubstr("the driver 550.54.14 supports CUDA up to 12.4, but this binary needs "
                        "13.0; install NVIDIA's driver 580 or newer"));
  machine.needed_cuda = 13020;  // minor versions do not matter
  machine.driver_cuda = 13000;
  EXPECT_EQ(what_of(machine_problem(machine)), "");
  // In a container the PCI bus may be hidden.
  machine.has_card = false;
  EXPECT_EQ(what_of(machine_problem(machine)), "");
}

TEST(GpuProblem, WhichCardsHaveKernels) {
  struct Case {
    int major, minor;
    const char* architectures;
    bool runs;
  };
  const Case cases[] = {
      {8, 0, kAll, true},        // A100
      {8, 6, kAll, true},        // RTX 3090
      {8, 7, kAll, true},        // Orin, by code for 8.6
      {8, 9, kAll, true},        // RTX 4090, L40S
      {9, 0, kAll, true},        // H100, H200
      {10, 0, kAll, true},       // B200
      {10, 3, kAll, true},       // B300, by code for 10.0
      {11, 0, kAll, false},      // Thor: later than 10, and no PTX before 12.0
      {12, 0, kAll, true},       // RTX 5090
      {12, 1, kAll, true},       // GB10
      {13, 0, kAll, true},       // by PTX
      {7, 5, kAll, false},       // T4
      {8, 0, "90a", false},      // a slim bundle on another card
      {9, 0, "90a-real", true},  //
      {10, 0, "90a", false},     // the letter: for 9.0 alone, PTX too
      {8, 6, "89", false},       // code for a later card
      {9, 0, "80", true},        // PTX
      {9, 0, "80-real", false},  // without
      {8, 0, "", false},
  };
  for (const Case& c : cases)
    EXPECT_EQ(has_kernels_for({"a card", c.major, c.minor}, c.architectures), c.runs)
        << c.major << "." << c.minor << " of " << c.architectures;
}

TEST(GpuProblem, OfACard) {
  EXPECT_EQ(what_of(card_problem({"NVIDIA A100", 8, 0}, kAll)), "");
  EXPECT_THAT(what_of(card_problem({"Tesla T4", 7, 5}, kAll)),
              HasSubstr("Tesla T4 (compute 7.5) is too old"));
  EXPECT_THAT(
      what_of(card_problem({"NVIDIA A100", 8, 0}, "90a-real")),
      HasSubstr("no kernels for NVIDIA A100 (compute 8.0), only for 90a-real; `make CUDA=1`"));
}

}  // namespace
}  // namespace antisd::inline ops
