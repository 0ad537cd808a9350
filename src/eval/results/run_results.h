// The evaluations that a run directory holds: eval/step-NNNNNN/summary.json, in the order of steps.
//
//   const RunResults run = read_run_results("runs/antisd");
//   run.evaluations.back().summary.average;
//
// An incomplete or damaged file only loses its evaluation and adds a note.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "eval/results/summary.h"

namespace antisd::inline eval {

struct StepEvaluation {
  std::int64_t step = 0;
  EvalSummary summary;
};

struct RunResults {
  std::string name;    // of its directory
  std::string method;  // "" where neither run.json nor config.toml says
  std::string model;   // model.path of its config.toml; "" where that does not say
  std::string seed;    // train.seed, likewise
  // train.init_from, likewise: if not "", the run's step 0 is the end of another run.
  std::string init_from = {};
  std::vector<StepEvaluation> evaluations;  // by step, each once
  std::vector<std::string> notes;           // what could not be read
};

// InputError if the directory does not exist; every other problem is a note.
RunResults read_run_results(const std::filesystem::path& directory);

}  // namespace antisd::inline eval
