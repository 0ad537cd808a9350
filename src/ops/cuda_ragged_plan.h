// Plans of cuDNN for attention over ragged sequences. A plan serves every batch of its rounded
// shape and is kept for the life of the process: making one takes 40 ms, the first ones up to 0.8
// s. What find_ragged_plan() finds runs by run_ragged_plan() with ragged_workspace() bytes.
//
// This header has no types of cuDNN, whose frontend takes two minutes to compile.
#pragma once

#include <compare>
#include <cstdint>

#include "ops/kernels/element_type.h"

struct cudnnContext;

namespace antisd::inline ops {

// What a plan is made for. Rows are tokens: [rows, heads, head_dim], with a stride between rows
// that may span more heads than the call computes.
struct RaggedCall {
  bool backward = false;
  // Backward: sums in a fixed order, so that the same operands give the same bits. The workspace
  // has the gradient of every score, sequences x heads x query_length x key_length x 2 bytes.
  bool fixed_order = false;
  int device = 0, capability = 0;  // 90: compute capability 9.0
  ElementType type = ElementType::kBFloat16;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t query_stride = 0, key_stride = 0, lse_stride = 0;  // elements
  std::int64_t sequences = 0, query_length = 0, key_length = 0;   // at most
  std::int64_t query_rows = 0, key_rows = 0;  // backward: of all sequences together, at most
  bool prefix = false;                        // some sequence has more keys than queries
  std::int64_t window = 0;                    // keys that a query sees, its own included; 0: all
  float scale = 1;

  auto operator<=>(const RaggedCall&) const = default;
};

// On the device. Lengths have an element for each sequence of the plan, each at least 1, offsets
// one more: elements from the pointer to a sequence's first row. out and lse are results of a
// forward call and operands of a backward one. lse: fp32 [rows, heads].
struct RaggedPointers {
  const void *q = nullptr, *k = nullptr, *v = nullptr;
  void *out = nullptr, *lse = nullptr;
  const void* gradient = nullptr;
  void *dq = nullptr, *dk = nullptr, *dv = nullptr;
  const std::int32_t *query_lengths = nullptr, *key_lengths = nullptr;
  const std::int32_t *query_offsets = nullptr, *key_offsets = nullptr, *lse_offsets = nullptr;
};

class RaggedPlan;

// As cuDNN writes it, 91900 for 9.19.0; 0: there is none.
std::int64_t cudnn_version();

// Null where cuDNN has no kernel for the call. Threads may call it at the same time.
const RaggedPlan* find_ragged_plan(const RaggedCall& call, cudnnContext* handle);

std::int64_t ragged_workspace(const RaggedPlan& plan);  // bytes

// Launches on the handle's stream; throws RunError with cuDNN's message.
void run_ragged_plan(const RaggedPlan& plan, cudnnContext* handle, const RaggedPointers& pointers,
                     void* workspace);

}  // namespace antisd::inline ops
