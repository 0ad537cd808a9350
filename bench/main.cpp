// antisd-bench NAME [options] [--json]: one program for all benchmarks. Figures that depend on the
// machine are printed with a limit or another program's figure from the same run.
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/benchmarks.h"
#include "core/error.h"

#ifdef ANTISD_TORCH
#include "ops/device.h"
#endif

namespace {

struct Benchmark {
  const char* name;
  const char* help;
  int (*run)(const antisd::bench::Arguments& arguments);
};

constexpr Benchmark kBenchmarks[] = {
    {"tokenize", "encoding speed: MB/s and tokens/s over texts, and over 1 MB lines of one kind",
     antisd::bench::run_tokenize},
    {"grade", "math grades per second over answers in model-like sentences",
     antisd::bench::run_grade},
    {"grade_code", "programs per second in the sandbox", antisd::bench::run_grade_code},
#ifdef ANTISD_TORCH
    {"experts", "a sparse layer compared with a dense one of equal FLOPs",
     antisd::bench::run_experts},
    {"attention", "attention by lengths, forward and backward, by each code that a GPU has",
     antisd::bench::run_attention},
    {"rollout", "tokens per second of sampling with a named shape, and the bandwidth limit",
     antisd::bench::run_rollout},
    {"sample", "from logits to tokens, with and without filters", antisd::bench::run_sample},
    {"update", "forward, backward and AdamW of a named shape, by part", antisd::bench::run_update},
    {"score", "score() of a named shape, token_scores by itself, shared prefixes: time and memory",
     antisd::bench::run_score},
    {"step", "a whole training step by phase, and what AntiSD adds to GRPO",
     antisd::bench::run_step},
    {"ranks", "the host's work of a rank in a step, by number of ranks", antisd::bench::run_ranks},
    {"precision", "log-probabilities in 16 bits on the GPU against fp32 on the CPU",
     antisd::bench::run_precision},
#endif
    {"data", "time to read a data set into a PromptSet", antisd::bench::run_data},
};

int print_usage() {
  fmt::print(stderr, "usage: antisd-bench NAME [options] [--json]\n");
  for (const Benchmark& benchmark : kBenchmarks) {
    fmt::print(stderr, "  {:<12} {}\n", benchmark.name, benchmark.help);
  }
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return print_usage();
  const antisd::bench::Arguments arguments(argv + 2, argv + argc);
#ifdef ANTISD_TORCH
  antisd::keep_freed_memory();
#endif
  try {
    for (const Benchmark& benchmark : kBenchmarks) {
      if (argv[1] == std::string(benchmark.name)) return benchmark.run(arguments);
    }
    return print_usage();
  } catch (const antisd::Error& error) {
    fmt::print(stderr, "antisd-bench: {}\n", error.message());
    return error.exit_status();
  } catch (const std::exception& error) {
    fmt::print(stderr, "antisd-bench: {}\n", error.what());
    return 1;
  }
}
