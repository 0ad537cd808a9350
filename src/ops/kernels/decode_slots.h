#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace antisd::inline ops {

// The slots of a decoder on the device: a step reads and updates them, so no token passes through
// the host between steps.
struct DecodeSlots {
  std::int64_t* tokens;      // [slots]: input of the next step
  std::int32_t* positions;   // [slots]
  std::int32_t* places;      // [slots, 4]: of the next random number, see counter_of()
  std::int32_t* pages;       // [slots, most_pages]
  std::int32_t* rows;        // [1]: slots [0, rows) are in the step
  std::int64_t* cache_rows;  // [slots]: where a step stores keys and values; -1: nowhere
  std::int32_t* lengths;     // [slots]: keys that a step reads; 0: the slot is not in the step
  std::int64_t most_pages;
};

// Edits, as a list of words that one kernel executes in order.
enum class SlotEdit : std::int32_t {
  kRows,    // rows
  kStart,   // slot, token, position, place (4 words), count, pages (count words)
  kMove,    // from, to, count of pages
  kAppend,  // slot, index, page
};
void launch_slot_edits(const DecodeSlots& slots, const std::int32_t* words, std::int64_t count,
                       cudaStream_t stream);

// Sets cache_rows and lengths of slots [0, bucket).
void launch_prepare_slots(const DecodeSlots& slots, int page_tokens, int bucket,
                          cudaStream_t stream);

// Advances slots [0, rows) by one token.
void launch_advance_slots(const DecodeSlots& slots, const std::int32_t* ids, int bucket,
                          cudaStream_t stream);

}  // namespace antisd::inline ops
