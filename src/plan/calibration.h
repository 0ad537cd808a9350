// What cards can do: the rows of calibration.jsonl.
//
//   const Card& card = find_card("h20");
//   const Rates rates = rates_of(card);  // FLOP/s, bytes/s and seconds of the program's parts
//
// The file has three kinds of rows, and each says where it comes from. A `card` is a data sheet. A
// `rate` is what the program reaches on an H200: measured (with the section of bench/RESULTS.md),
// from a data sheet, or assumed. Another card's rates are scaled from it by peak FLOPs or by memory
// bandwidth. A `row` is a measured time, and says whether rates were fitted to it or not; the test
// predicts them all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"

namespace antisd::inline plan {

struct Card {
  std::string name;   // "h200"
  std::string gpu;    // part of the driver's name: "H200"
  double memory = 0;  // bytes
  double flops = 0;   // dense 16-bit, per second
  double read = 0;    // bytes per second
  double link = 0;    // bytes per second to the other cards of a node, each way
};

const std::vector<Card>& cards();
// InputError that lists them.
const Card& find_card(const std::string& name);
// The card of that name with the most similar memory; null if there is none.
const Card* card_of_gpu(std::string_view gpu_name, double memory);

// FLOP/s, bytes/s or seconds; calibration.jsonl says of what.
struct Rates {
  double products = 0, elementwise = 0;
  double head_forward = 0, head_backward = 0, logit = 0;
  double attention_even = 0, attention_even_backward = 0, attention = 0, attention_backward = 0;
  double experts = 0, routed = 0;
  double adamw = 0, adamw_start = 0;
  double read = 0, decode_layer = 0, sampling_start = 0;
  double exchange = 0, exchange_start = 0, fetch = 0;
  double reserve = 0;
  double link_share = 0, host_copy = 0, host_stream = 0, disk = 0, messages = 0;
};

Rates rates_of(const Card& card);

// The file's rows with this key: "card", "rate" or "row".
std::vector<Json> calibration_rows(std::string_view kind);

}  // namespace antisd::inline plan
