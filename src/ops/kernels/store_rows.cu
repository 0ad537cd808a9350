#include "ops/kernels/launch.h"
#include "ops/kernels/store_rows.h"

namespace antisd::inline ops {
namespace {

constexpr int kThreads = 128;

// blockIdx.y: keys or values.
template <typename Word>
__global__ void __launch_bounds__(kThreads)
    store_kernel(const Word* keys, const Word* values, const std::int64_t* places,
                 std::int64_t words, Word* key_cache, Word* value_cache) {
  const std::int64_t row = blockIdx.x, place = places[row];
  if (place < 0) return;
  const Word* from = (blockIdx.y == 0 ? keys : values) + row * words;
  Word* to = (blockIdx.y == 0 ? key_cache : value_cache) + place * words;
  for (std::int64_t i = threadIdx.x; i < words; i += kThreads)
    to[i] = from[i];
}

template <typename Word>
void run(const void* keys, const void* values, const std::int64_t* places, std::int64_t rows,
         std::int64_t bytes, void* key_cache, void* value_cache, cudaStream_t stream) {
  store_kernel<<<dim3(grid_for(rows, 1), 2), kThreads, 0, stream>>>(
      static_cast<const Word*>(keys), static_cast<const Word*>(values), places,
      bytes / static_cast<std::int64_t>(sizeof(Word)), static_cast<Word*>(key_cache),
      static_cast<Word*>(value_cache));
}

}  // namespace

void launch_store_rows(const void* keys, const void* values, const std::int64_t* places,
                       std::int64_t rows, std::int64_t bytes, void* key_cache, void* value_cache,
                       cudaStream_t stream) {
  if (rows == 0) return;
  const bool wide = bytes % 16 == 0 && aligned_to_16(keys, values, key_cache, value_cache);
  (wide ? run<uint4> : run<unsigned short>)(keys, values, places, rows, bytes, key_cache,
                                            value_cache, stream);
  check_launch("store_rows");
}

}  // namespace antisd::inline ops
