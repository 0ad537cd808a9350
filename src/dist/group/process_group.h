// The ranks of a run as processes, on one node or several: messages and memory travel by c10d, over
// TCP (Gloo) on the host and by NCCL between GPUs. This layer is the only one that knows c10d.
//
//   const Place place = find_place(process_environment());
//   const std::unique_ptr<ProcessGroup> ranks = join_group(place, {.identity = revision});
//   train(*ranks);                             // a Communicator
//   ranks->leave();                            // returns when all have ended
//
// Calls wait for the other ranks as long as they live, however late they are. When one is lost,
// they call on_loss, or throw RankLost with a rank's name and phase. The connections are then in an
// unknown state: the group's destructor leaves its threads and sockets behind, and the process has
// to end by _exit once it has printed its message.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/error.h"
#include "dist/communicator.h"
#include "dist/place.h"

namespace antisd::inline dist {

// How memory of GPUs travels.
enum class GpuBackend {
  kAuto,  // NCCL where each rank has a GPU of its own, Gloo otherwise
  kGloo,  // through the host's memory
  kNccl,
};

struct GroupOptions {
  GpuBackend backend = GpuBackend::kAuto;
  // What has to be equal on all ranks, one fact a line: the revision, keys and their values.
  std::string identity;
  double silence_s = 30;  // how long a rank that lives may be silent
  double wait_s = 300;    // how long to wait for ranks that do not come
  // Where the others reach this rank; empty: at the interface that leads to rank 0's host.
  std::string address;
  // Called when a rank is lost: by a call that waits for it, or from a thread while this rank
  // computes and asks for nothing. It is expected to print the error and to end the process by
  // _exit, before memory is freed that is still being sent. Without it the next call throws.
  std::function<void(const RunError&)> on_loss;
};

class ProcessGroup : public Communicator {
 public:
  // Ends the run properly: waits until all ranks have called this. RunError if one is lost
  // meanwhile. The destructor does so too where it was not called, but swallows the error.
  virtual void leave() = 0;

  // Tells the others why this rank ends alone: they throw "rank 2 failed: ...". Takes up to 2 s;
  // then the process should end by _exit.
  virtual void fail(const std::string& message) noexcept = 0;
};

// Returns when all ranks of the place have come. One clear error each, on all ranks that can have
// it: InputError for ranks that were started differently or claim the same rank
// (dist/rendezvous.h); RunError for a port in use, a host that is unknown or does not answer, ranks
// that do not come.
std::unique_ptr<ProcessGroup> join_group(const Place& place, const GroupOptions& options);

}  // namespace antisd::inline dist
