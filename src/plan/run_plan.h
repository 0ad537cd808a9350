// What a training run needs and how long it takes on a machine that need not be there.
//
//   const Machine machine{.card = find_card("h20"), .gpus = 16, .per_node = 8};
//   const RunPlan plan = plan_run({config, shape, machine, set_forms(config)}, lengths);
//   std::cout << text_of(plan);   // or json_of(plan).dump()
//
// It needs no weights and no data. Everything is a prediction; the rates behind it are
// calibration.jsonl's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/lengths.h"
#include "plan/plan_input.h"

namespace antisd::inline plan {

struct RunPlan {
  std::string model;
  double parameters = 0;
  Machine machine;
  RankDivision ranks;
  bool shard_chosen = false, offload_chosen = false;  // not the input's
  std::vector<StateForm> forms;

  MemoryPlan memory;
  double needed = 0;     // bytes of a rank at least; `memory` may keep more activations
  double available = 0;  // bytes of a card for this program
  bool fits = false;
  double cache_bytes = 0;
  std::int64_t cache_tokens = 0;
  int smallest_gpus = 0;  // that fit, of this card with so many a node; 0: none up to 256

  std::optional<StepTime> step;  // only if it fits
  double save = 0;               // seconds to write one checkpoint
  double save_exposed = 0;       // of it, that training waits for
  double evaluation = 0;         // seconds of one
  std::int64_t steps = 0, saves = 0, evaluations = 0;
  std::string lengths;

  std::string limit;                // what it is bound by
  std::vector<std::string> advice;  // what would help
  std::vector<std::string> notes;   // what the plan leaves out

  double step_seconds() const { return step ? step->seconds() : 0; }
  double hours() const;
};

// InputError if the ranks do not fill the nodes.
RunPlan plan_run(const PlanInput& input, const Lengths& lengths);

// Memory by part, one line each: "   15.26 GiB  weights           always    2 bytes a parameter".
std::vector<std::string> memory_lines(const MemoryPlan& memory);
// Everything but memory by part, one line each.
std::vector<std::string> plan_lines(const RunPlan& plan);
std::string text_of(const RunPlan& plan);
Json json_of(const RunPlan& plan);

}  // namespace antisd::inline plan
