// Seconds that passes over a model take on a card, from FLOPs and bytes.
//
//   const PassTime time(shape, rates);
//   const PassWork work = time.work_of(sequences);
//   const double update = time.forward(work) + time.head(work) + time.backward(work, 1);
//
// For 16-bit weights. Products, attention, head and what reads and writes activations have a rate
// each and are added up: nothing overlaps on one card.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "model/model_shape.h"
#include "plan/calibration.h"

namespace antisd::inline plan {

inline constexpr double kElementBytes = 2;  // of a weight or an activation

// A sequence of a pass.
struct PassSequence {
  std::int64_t tokens = 0;
  std::int64_t shared = 0;   // leading tokens that the sequence before it has computed
  std::int64_t targets = 0;  // tokens whose log-probability is wanted
};

struct PassWork {
  double tokens = 0, targets = 0;
  double attention = 0;  // FLOPs of the forward pass
  bool even = false;     // lengths for which cuDNN is used (ops/attention.h)
};

class PassTime {
 public:
  PassTime(const ModelShape& shape, const Rates& rates);

  PassWork work_of(std::span<const PassSequence> sequences) const;
  // Of queries at positions [begin, end) that see all keys up to their own.
  double attention_flops(std::int64_t begin, std::int64_t end) const;

  double forward(const PassWork& work) const;  // of the layers
  double head(const PassWork& work) const;     // log-probabilities and entropies of the targets
  // Of layers and head. `recomputed`: the share of the layers that are computed anew, but for
  // attention and last product.
  double backward(const PassWork& work, double recomputed) const;
  double adamw(double elements, double gradient_bytes) const;  // of one element's gradient

  // A decode step of so many rows; `kv_bytes` are those of all of them.
  double decode_step(double rows, double kv_bytes) const;
  double kv_bytes(std::int64_t context) const;           // that a row with so many keys reads
  double kv_bytes_stored() const { return kv_stored_; }  // of a token

  const Rates& rates() const { return rates_; }

 private:
  // Of one token through all layers.
  struct TokenCost {
    double dense = 0, experts = 0;  // FLOPs of products
    double bytes = 0, routed = 0;   // read and written beside them; elements of routed rows
    double seconds(const Rates& rates) const;
  };

  Rates rates_;
  TokenCost forward_, recomputed_;
  double head_flops_ = 0, logits_ = 0;   // per target
  double head_dim_flops_ = 0;            // of attention: per query and key of a layer
  double dense_bytes_ = 0;               // weights that every decode step reads
  double expert_bytes_ = 0;              // of all experts
  double routed_share_ = 0;              // of the experts, by one token
  double kv_layer_ = 0, kv_stored_ = 0;  // bytes per token: of a layer, of all
  double layers_ = 0;
  std::map<std::int64_t, double> windows_;  // layers by window; 0: without
};

}  // namespace antisd::inline plan
