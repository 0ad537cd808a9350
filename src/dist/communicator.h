// Communication between the processes of a run. Contract: every process holds all parameters and a
// part of the batch. Sums and records already work for several processes; gradients are not summed
// yet, so code that updates weights refuses more than one (refuse_several). With one process, each
// call returns at once.
//
//   std::unique_ptr<Communicator> processes = alone();
//   const double tokens = sum(*processes, local_tokens);                // over the global batch
//   const std::vector<double> all = processes->gather(own_entropies);  // from all processes
//
// Every process makes the same calls in the same order. Sums are added in rank order, so all
// processes get the same bits in every run.
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

  // The values of rank 0, then rank 1, and so on, on every process. Counts may differ.
  virtual std::vector<double> gather(std::span<const double> values) = 0;
};

double sum(Communicator& processes, double value);

// RunError for more than one process: each would train on the gradients of only its part of the
// batch.
void refuse_several(const Communicator& processes);

// A run of one process.
std::unique_ptr<Communicator> alone();

}  // namespace antisd::inline dist
