#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace antisd::inline ops {

// Copies row i of `keys` and `values`, of `bytes` each (an even number), to row places[i] of the
// caches; skipped if places[i] < 0.
void launch_store_rows(const void* keys, const void* values, const std::int64_t* places,
                       std::int64_t rows, std::int64_t bytes, void* key_cache, void* value_cache,
                       cudaStream_t stream);

}  // namespace antisd::inline ops
