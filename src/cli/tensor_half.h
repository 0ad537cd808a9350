// The half of the program above the tensor line: libantisd_tensor.so, which needs torch. It is
// loaded when a command first needs it, because that takes a quarter of a second, and commands over
// text and files work where there is no torch.
//
//   const std::function<int()> run = load_tensor_half().add("train", app);
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/examination.h"

namespace antisd::inline cli {

struct TensorHalf {
  const char* version;  // of the library; it has to be the program's
  // Adds the flags of a command, as Command::add does.
  std::function<int()> (*add)(const std::string& command, CLI::App& app);
  // For `doctor`: torch and the devices; the recipes' models on the first device.
  std::vector<Examination> (*examine_devices)();
  std::vector<Examination> (*examine_models)();
};

// RunError with the remedy if the library or torch is missing, or is of another version. The
// OpenMP runtime that torch brings reads when it is loaded how its threads wait for each other. By
// spinning they take cores from the threads they wait for, and on a busy machine a step takes
// several times as long as with one thread. They sleep unless the user has set how to wait. Child
// processes do not inherit the setting.
const TensorHalf& load_tensor_half();

// For tests that are linked with it: load_tensor_half() then returns this one.
void use_tensor_half(const TensorHalf& half);

}  // namespace antisd::inline cli

// What the library exports.
extern "C" const antisd::TensorHalf* antisd_tensor_half();
