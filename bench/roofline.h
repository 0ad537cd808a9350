// What no decoding of the same responses can beat: part by part (products of the layers, attention,
// head) the larger of the time that its bytes take and the time that its flops take.
//
//   const Roofline roofline = find_roofline(model, prompt, lengths, steps, bandwidth);
//   print_roofline(roofline, steps, seconds);
#pragma once

#include <cstdint>
#include <vector>

#include "io/json.h"
#include "model/causal_lm.h"

namespace antisd::bench {

struct Roofline {
  struct Part {
    double bytes = 0, flops = 0;  // of all steps
    double seconds = 0;
    bool bound_by_flops = false;
  };
  Part products, head;
  Part attention;       // a group's prompt is read once a step for all its samples,
  Part attention_rows;  // or once for each of them
  double rate = 0;      // flops per second, of a product of two large matrices

  double seconds() const { return products.seconds + head.seconds + attention.seconds; }
  double seconds_by_row() const { return products.seconds + head.seconds + attention_rows.seconds; }
};

// Responses of these lengths, by group, behind prompts of `prompt` tokens, in so many steps.
// `bandwidth`: bytes per second of reading memory.
Roofline find_roofline(const CausalLm& model, std::int64_t prompt,
                       const std::vector<std::vector<std::int64_t>>& lengths, std::int64_t steps,
                       double bandwidth);

// Against steps that took `seconds` together.
Json to_json(const Roofline& roofline, std::int64_t steps, double seconds);
void print_roofline(const Roofline& roofline, std::int64_t steps, double seconds);

}  // namespace antisd::bench
