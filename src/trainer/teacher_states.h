// What a teacher that is another model saw of a step's responses: its hidden states before their
// tokens, in the host's memory, so that the teacher itself need not be on the device while the
// student is updated. Only its head is.
//
//   TeacherStates states;
//   states.look(teacher, shown, numbers, temperature);   // in batches, without gradients
//   states.hidden_of(sequences, device);                 // [targets, the teacher's width]
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "inference/response_pass.h"

namespace antisd::inline trainer {

class TeacherStates {
 public:
  // Passes sequences through the teacher; `numbers` are those of their responses.
  void look(const CausalLm& teacher, std::span<const TargetSequence> shown,
            std::span<const std::size_t> numbers, double temperature);

  bool has(std::size_t number) const { return by_number_.contains(number); }
  std::size_t size() const { return by_number_.size(); }

  // Of sequences with the same targets, by TargetSequence::number.
  at::Tensor hidden_of(std::span<const TargetSequence> sequences, at::Device device) const;
  std::vector<TokenScores> scores_of(std::span<const TargetSequence> sequences) const;

  at::Tensor head;  // [rows, width], on the device

 private:
  struct Seen {
    at::Tensor hidden;  // [targets, width], on the host
    TokenScores scores;
  };
  const Seen& at(const TargetSequence& sequence) const;

  std::map<std::size_t, Seen> by_number_;
};

}  // namespace antisd::inline trainer
