#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace antisd::inline ops {

// Row i of `keys` and `values` goes to row places[i] of the caches, of `bytes` each (an even
// number); to none where places[i] < 0.
void launch_store_rows(const void* keys, const void* values, const std::int64_t* places,
                       std::int64_t rows, std::int64_t bytes, void* key_cache, void* value_cache,
                       cudaStream_t stream);

}  // namespace antisd::inline ops
