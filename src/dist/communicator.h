// What the processes of one run tell each other. The contract: every process holds all parameters
// and a part of the batch. Sums and records are written as if there were several; gradients are not
// summed yet, so whoever updates weights refuses more than one (refuse_several). Alone, each call
// returns at once.
//
//   std::unique_ptr<Communicator> processes = alone();
//   const double tokens = sum(*processes, local_tokens);                // of the global batch
//   const std::vector<double> all = processes->gather(own_entropies);  // of all processes
//
// Every process makes the same calls in the same order. Sums run in the order of the ranks, so that
// all processes get the same bits, run after run.
#pragma once

#include <memory>
#include <span>
#include <vector>

namespace antisd::inline dist {

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // In place, over all processes.
  virtual void sum(std::span<double> values) = 0;

  // The values of rank 0, then of rank 1, and so on, for every process. Counts may differ.
  virtual std::vector<double> gather(std::span<const double> values) = 0;
};

double sum(Communicator& processes, double value);

// RunError for more than one process: each would train on gradients of its own part of the batch.
void refuse_several(const Communicator& processes);

// A run of one process.
std::unique_ptr<Communicator> alone();

}  // namespace antisd::inline dist
