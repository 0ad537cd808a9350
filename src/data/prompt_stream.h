// The order of problems: shuffled epochs over `size` items, with a cursor that is saved and resumed
// exactly.
//
//   PromptStream stream(prompts.size(), prompts.fingerprint(), {.seed = 7});
//   for (std::size_t index : stream.next(32)) use(prompts[index]);
//   checkpoint["prompts"] = stream.state();   // later: stream.restore(checkpoint["prompts"])
//
// An epoch's order is a function of (seed, epoch), so the cursor is {epoch, position}. A batch that
// reaches the end of an epoch is filled from the next one: no batch is short, and no item occurs
// twice in an epoch. (A batch across the boundary can hold an item twice, once per epoch.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "io/json.h"

namespace antisd::inline data {

struct PromptStreamOptions {
  std::uint64_t seed = 0;
  bool shuffle = true;  // false: file order in every epoch
};

class PromptStream {
 public:
  // `fingerprint` identifies the content of the data set. InputError if size is 0.
  PromptStream(std::size_t size, std::string fingerprint, PromptStreamOptions options = {});

  std::vector<std::size_t> next(std::size_t count);

  std::uint64_t epoch() const { return epoch_; }      // of the next item, from 0
  std::size_t position() const { return position_; }  // items of that epoch already returned
  std::uint64_t given() const { return epoch_ * order_.size() + position_; }  // items in total

  // {seed, shuffle, size, fingerprint, epoch, position}
  Json state() const;
  // InputError that names the difference if the state is of another data set, seed or order.
  void restore(const Json& state);

 private:
  void start_epoch(std::uint64_t epoch);

  std::string fingerprint_;
  PromptStreamOptions options_;
  std::uint64_t epoch_ = 0;
  std::size_t position_ = 0;
  std::vector<std::uint32_t> order_;  // the permutation of epoch_
};

}  // namespace antisd::inline data
