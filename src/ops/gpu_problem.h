// Why a machine's GPUs cannot be used, and what helps. Pure functions of what device.cpp finds out,
// so that they can be tested without any GPU.
//
//   if (const auto problem = card_problem({"Tesla T4", 7, 5}, "80-real 90a"))
//     std::cerr << problem->what << "; " << problem->remedy << "\n";
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace antisd::inline ops {

struct GpuProblem {
  std::string what;
  std::string remedy;
};

struct GpuMachine {
  bool has_card = false;            // an NVIDIA card on the PCI bus
  bool has_driver = false;          // its control file is there
  bool built_with_cuda = false;     // our kernels are in this binary
  int driver_cuda = 0;              // the newest CUDA that the driver supports: 13000 is 13.0
  int needed_cuda = 0;              // the CUDA of this binary
  std::string driver_version = {};  // "550.54.14"
};

// Nothing if the machine has no card, or if its cards may be used.
std::optional<GpuProblem> machine_problem(const GpuMachine& machine);

struct GpuCard {
  std::string name;
  int major = 0, minor = 0;  // compute capability
};

// Whether a binary with kernels for these architectures, "80-real 90a 120", runs on a card. Code
// for X.Y runs on X.Z with Z >= Y; without "-real" there is PTX too, which the driver compiles for
// any later card; the letter in "90a" limits both to exactly 9.0.
bool has_kernels_for(const GpuCard& card, std::string_view architectures);

// Nothing if the card can be used.
std::optional<GpuProblem> card_problem(const GpuCard& card, std::string_view architectures);

}  // namespace antisd::inline ops
