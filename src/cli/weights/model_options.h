// MODEL and the options common to all commands with a model.
#pragma once

#include <filesystem>
#include <string>

#include <CLI/CLI.hpp>

#include "model/causal_lm.h"

namespace antisd::inline cli {

struct ModelOptions {
  std::string model;
  std::string base;  // of an adapter, in place of the one it names
  std::string device = "auto";
  std::string dtype = "auto";
  std::string base_dtype;  // empty: none was given
  int threads = 0;         // 0: as many as the machine has free at the start
  bool check_weights = false;
};

// Adds MODEL; its flags come from add_device_options(), after the other positionals.
void add_model_argument(CLI::App& app, ModelOptions& options);
void add_device_options(CLI::App& app, ModelOptions& options);

// The directory with config.json and tokenizer: MODEL, or an adapter's base.
std::filesystem::path files_of(const ModelOptions& options);

// Sets the number of threads and loads the weights, for a rank on its own device.
CausalLm open_model(const ModelOptions& options, int local_rank = 0);

}  // namespace antisd::inline cli
