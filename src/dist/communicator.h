// What the ranks (processes) of a run tell each other. All ranks make the same calls in the same
// order; a run of one process has one rank, for which each call returns at once.
//
//   const std::vector<std::string> all = ranks.gather(own);      // what each rank says, by rank
//   const double tokens = sum_over(ranks, own_tokens);           // the same bits on every rank
//
// Sums are added in the order of the ranks, by whoever needs them: the result does not depend on
// how the messages travel. Gradients and weights move as parts of memory:
//
//   auto sent = ranks.exchange_parts({own, received, part_bytes, MemoryKind::kHost});
//   // ... compute something else ...
//   sent->wait();                                                // received[r] came from rank r
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"

namespace antisd::inline dist {

// A rank died, fell silent or failed on its own. The ranks cannot meet any more: nothing that needs
// all of them, such as a save, is tried after it.
class RankLost : public RunError {
 public:
  using RunError::RunError;
};

// This rank failed where the others do not wait to hear of it. It has to end, and nothing that
// needs all ranks is tried after it; the others learn of it by ProcessGroup::fail().
class FailedAlone : public RunError {
 public:
  using RunError::RunError;
};

// A movement of memory that is under way. The memory stays allocated and untouched until wait()
// returns. RankLost if a rank is lost meanwhile.
class Transfer {
 public:
  virtual ~Transfer() = default;
  virtual void wait() = 0;
};

enum class MemoryKind { kHost, kGpu };

// On every rank the same sizes.
struct Parts {
  const void* own;
  void* received;
  std::int64_t part_bytes;
  MemoryKind kind = MemoryKind::kHost;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // What this rank begins now, for the message of the others should it fall silent: "sampling of
  // step 12".
  virtual void enter(const std::string& phase) = 0;

  // What every rank says, by rank; lengths may differ. Waits for ranks as long as they are alive.
  // RankLost, which names the rank and its phase, where one is not.
  virtual std::vector<std::string> gather(const std::string& own) = 0;

  // `own` and `received` have size() parts: part r of `own` goes to rank r, and part r of
  // `received` comes from rank r.
  virtual std::unique_ptr<Transfer> exchange_parts(const Parts& parts) = 0;

  // `own` is one part, `received` has size() parts: part r is rank r's. `own` may be this rank's
  // part of `received`.
  virtual std::unique_ptr<Transfer> collect_parts(const Parts& parts) = 0;

  // A communicator of some ranks (ascending, this one among them). Each of them asks for it at the
  // same time, with the same list, and the others ask for one of theirs: among() is a call that all
  // ranks make.
  virtual std::unique_ptr<Communicator> among(const std::vector<int>& ranks) = 0;

  // The same ranks once more, for another thread. All ranks ask for it at the same time.
  virtual std::unique_ptr<Communicator> beside() = 0;

  // How many seconds each call of this communicator, and of those that among() made of it, has
  // waited since this was last asked. Item i is the same call on every rank. The rank that came
  // last to it waited only for what the call itself takes; the others waited for that rank too.
  virtual std::vector<double> take_waits() = 0;
};

// Added in the order of the ranks.
double sum_over(Communicator& ranks, double value);
std::vector<double> sum_over(Communicator& ranks, std::span<const double> values);

// The values of rank 0, then rank 1, and so on; counts may differ.
std::vector<double> gather_values(Communicator& ranks, std::span<const double> own);

// A run of one process.
std::unique_ptr<Communicator> alone();

}  // namespace antisd::inline dist
