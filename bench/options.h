// Common parts of the benchmarks' command lines.
//
//   CLI::App app("time of one update", "antisd-bench update");
//   add_model_options(app, options.shape, options.device);
//   add_number(app, "--repeats", options.repeats, 1, 1000);
//   if (const auto status = parse(app, arguments)) return *status;
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench/benchmarks.h"

namespace antisd::bench {

// The exit status if the program should end now, after an error or --help.
inline std::optional<int> parse(CLI::App& app, const Arguments& arguments) {
  try {
    app.parse(Arguments(arguments.rbegin(), arguments.rend()));  // CLI11 takes them reversed
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
}

template <typename Number>
CLI::Option* add_number(CLI::App& app, const std::string& name, Number& field,
                        std::type_identity_t<Number> low, std::type_identity_t<Number> high,
                        const std::string& help = "") {
  return app.add_option(name, field, help)->capture_default_str()->check(CLI::Range(low, high));
}

inline void add_choice(CLI::App& app, const std::string& name, std::string& field,
                       const std::vector<std::string>& choices, const std::string& help = "") {
  app.add_option(name, field, help)->capture_default_str()->check(CLI::IsMember(choices));
}

// --shape (see named_shape) and --device.
inline void add_model_options(CLI::App& app, std::string& shape, std::string& device) {
  app.add_option("--shape", shape)->capture_default_str();
  add_choice(app, "--device", device, {"cpu", "cuda"});
}

inline void add_dtype_option(CLI::App& app, std::string& dtype) {
  add_choice(app, "--dtype", dtype, {"auto", "bf16", "fp16"}, "auto: bf16 on a GPU");
}

inline void add_base_option(CLI::App& app, std::string& base) {
  add_choice(app, "--base-dtype", base, {"model", "int8", "nf4"}, "of the layers' matrices");
}

inline void add_offload_option(CLI::App& app, std::string& offload) {
  add_choice(app, "--offload", offload, {"none", "moments", "all"}, "optim.offload");
}

inline void add_threads_option(CLI::App& app, int& threads) {
  add_number(app, "--threads", threads, 0, 1024, "0: as many as torch chooses");
}

inline void add_clock_option(CLI::App& app, std::string& clock) {
  add_choice(app, "--clock", clock, {"wall", "cpu"},
             "cpu: processor time, for one thread on a busy machine");
}

}  // namespace antisd::bench
