// One of several ranks whose messages are there already, to time what a rank does with them.
//
//   Echo ranks(3, messages);                       // of all ranks, by rank
//   const Rollouts all = join_rollouts(ranks.gather(own));
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "dist/communicator.h"
#include "dist/message.h"

namespace antisd::bench {

class Echo : public Communicator {
 public:
  Echo(int rank, std::vector<std::string> messages) : rank_(rank), messages_(std::move(messages)) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(messages_.size()); }
  void enter(const std::string&) override {}
  std::vector<std::string> gather(const std::string& own) override {
    messages_[static_cast<std::size_t>(rank_)] = own;
    return messages_;  // copied, as a message that arrives is written to memory
  }
  std::unique_ptr<Transfer> exchange_parts(const Parts&) override { no_memory_moves(); }
  std::unique_ptr<Transfer> collect_parts(const Parts&) override { no_memory_moves(); }
  std::unique_ptr<Communicator> among(const std::vector<int>&) override { no_memory_moves(); }
  std::unique_ptr<Communicator> beside() override { no_memory_moves(); }
  std::vector<double> take_waits() override { return {}; }

 private:
  [[noreturn]] static void no_memory_moves() { throw RunError("an echo has only messages"); }

  int rank_;
  std::vector<std::string> messages_;
};

// As gather_agreed() sends it where the work went well.
inline std::string agreed(const MessageWriter& writer) {
  return "." + writer.bytes();
}

}  // namespace antisd::bench
