// Where a process stands among the ranks of its run, and where they meet: read from the variables
// that our own launcher (dist/launch.h), torchrun or Slurm's srun set.
//
//   const Place place = find_place(process_environment());
//   recorder.info(place.text());  // "rank 3 of 16 (torchrun), 3 of 8 on this node, meeting at ..."
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace antisd::inline dist {

// The value of a variable; nothing where it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment process_environment();

// Our launcher sets it beside torchrun's variables, to a name that no other launch has.
inline constexpr const char* kLaunchVariable = "ANTISD_LAUNCH";

struct Place {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  // among the ranks of this node
  int node_cores = 0;                  // for all of them; 0: those that each of them may use
  std::string host;                    // of rank 0; empty for a run of one process without others
  int port = 0;                        // of the store there
  bool store_is_running = false;       // torchrun's agent holds it; otherwise rank 0 has to
  // Begins the keys of this run's meeting. A store that outlives a restart holds the keys of the
  // ranks before it.
  std::string meeting;
  std::string source;  // who said so: "--processes", "torchrun", "Slurm"; empty: nobody

  std::string text() const;
};

// The first of our launcher, torchrun and Slurm whose variables are all there; one process where
// there is none. InputError for values that contradict each other.
Place find_place(const Environment& environment);

// Children of this process do not take themselves for ranks: a reward program may run `antisd`.
// Call it before threads start.
void hide_place();

// The first host of a Slurm node list: "n[003-005,9],login" -> "n003".
std::string first_host(const std::string& node_list);

// The tasks of one node from Slurm's list by node: ("8(x2),4", 2) -> 4.
int tasks_of_node(const std::string& tasks_per_node, int node);

}  // namespace antisd::inline dist
