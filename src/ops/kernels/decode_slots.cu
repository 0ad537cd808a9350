#include "ops/kernels/decode_slots.h"
#include "ops/kernels/launch.h"

namespace antisd::inline ops {
namespace {

constexpr int kThreads = 256;

__device__ void copy_words(const std::int32_t* from, std::int32_t* to, int count) {
  for (int i = threadIdx.x; i < count; i += kThreads)
    to[i] = from[i];
}

// One block: an edit may depend on the one before it.
__global__ void __launch_bounds__(kThreads)
    edit_kernel(DecodeSlots s, const std::int32_t* words, std::int64_t count) {
  for (std::int64_t at = 0; at < count;) {
    const auto kind = static_cast<SlotEdit>(words[at]);
    const std::int32_t* edit = words + at + 1;
    if (kind == SlotEdit::kRows) {
      if (threadIdx.x == 0) *s.rows = edit[0];
      at += 2;
    } else if (kind == SlotEdit::kStart) {
      const int slot = edit[0], pages = edit[7];
      if (threadIdx.x == 0) {
        s.tokens[slot] = edit[1];
        s.positions[slot] = edit[2];
      }
      copy_words(edit + 3, s.places + slot * 4, 4);
      copy_words(edit + 8, s.pages + slot * s.most_pages, pages);
      at += 9 + pages;
    } else if (kind == SlotEdit::kMove) {
      const int from = edit[0], to = edit[1];
      if (threadIdx.x == 0) {
        s.tokens[to] = s.tokens[from];
        s.positions[to] = s.positions[from];
      }
      copy_words(s.places + from * 4, s.places + to * 4, 4);
      copy_words(s.pages + from * s.most_pages, s.pages + to * s.most_pages, edit[2]);
      at += 4;
    } else {
      if (threadIdx.x == 0) s.pages[edit[0] * s.most_pages + edit[1]] = edit[2];
      at += 4;
    }
    __syncthreads();
  }
}

__global__ void prepare_kernel(DecodeSlots s, int page_tokens, int bucket) {
  const int slot = blockIdx.x * kThreads + threadIdx.x;
  if (slot >= bucket) return;
  const bool present = slot < *s.rows;
  const int position = s.positions[slot];
  s.lengths[slot] = present ? position + 1 : 0;
  s.cache_rows[slot] =
      present ? std::int64_t{s.pages[slot * s.most_pages + position / page_tokens]} * page_tokens +
                    position % page_tokens
              : -1;
}

__global__ void advance_kernel(DecodeSlots s, const std::int32_t* ids, int bucket) {
  const int slot = blockIdx.x * kThreads + threadIdx.x;
  if (slot >= bucket || slot >= *s.rows) return;
  s.tokens[slot] = ids[slot];
  ++s.positions[slot];
  ++s.places[slot * 4];  // its first word is the position
}

}  // namespace

void launch_slot_edits(const DecodeSlots& slots, const std::int32_t* words, std::int64_t count,
                       cudaStream_t stream) {
  if (count == 0) return;
  edit_kernel<<<1, kThreads, 0, stream>>>(slots, words, count);
  check_launch("slot_edits");
}

void launch_prepare_slots(const DecodeSlots& slots, int page_tokens, int bucket,
                          cudaStream_t stream) {
  prepare_kernel<<<grid_for(bucket, kThreads), kThreads, 0, stream>>>(slots, page_tokens, bucket);
  check_launch("prepare_slots");
}

void launch_advance_slots(const DecodeSlots& slots, const std::int32_t* ids, int bucket,
                          cudaStream_t stream) {
  advance_kernel<<<grid_for(bucket, kThreads), kThreads, 0, stream>>>(slots, ids, bucket);
  check_launch("advance_slots");
}

}  // namespace antisd::inline ops
