// A command as one of the ranks that torchrun, srun or --processes started, or alone: joins the
// others, works, and ends so that a problem is told once, by rank 0 where it is alive.
//
//   const Place place = this_place();
//   Console console(console_options(place, false));
//   const int status =
//       run_on_ranks(place, {config.dist, identity_of("train", config)}, train_as_one_of);
#pragma once

#include <functional>
#include <string>

#include "config/run_config.h"
#include "dist/communicator.h"
#include "dist/place.h"
#include "run/metrics/console.h"

namespace antisd::inline cli {

// Where this process stands. From now on it uses its share of the node's cores.
Place this_place();

// Only rank 0 talks.
ConsoleOptions console_options(const Place& place, bool quiet);

struct RankOptions {
  DistConfig dist;
  std::string identity;  // what has to be equal on all ranks, one fact a line
};

// The revision, the command and its configuration.
std::string identity_of(const std::string& command, const RunConfig& config);

// Returns what `work` returned. With several ranks it returns when all have finished, and an error
// ends the process.
int run_on_ranks(const Place& place, const RankOptions& options,
                 const std::function<int(Communicator& ranks)>& work);

}  // namespace antisd::inline cli
