#include "inference/kv_pool.h"

#include <sys/mman.h>

namespace antisd::inline inference {
namespace {

// Asks for huge pages: a step of many sequences reads from the whole pool. Only a hint, so a
// failure does not matter.
void prefer_large_pages(const at::Tensor& memory) {
  constexpr std::uintptr_t kPage = 4096;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data_ptr());
  const std::uintptr_t first = (begin + kPage - 1) / kPage * kPage,
                       last = (begin + memory.nbytes()) / kPage * kPage;
  if (last > first) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

}  // namespace

std::int64_t KvPool::page_bytes(const ModelShape& shape, at::ScalarType dtype) {
  return static_cast<std::int64_t>(shape.layers.size()) * 2 * kPageTokens * shape.kv_heads *
         shape.head_dim * static_cast<std::int64_t>(c10::elementSize(dtype));
}

KvPool::KvPool(const CausalLm& model, std::int64_t pages) : ledger_(pages) {
  const ModelShape& shape = model.shape();
  const auto layers = static_cast<std::int64_t>(shape.layers.size());
  memory_ = at::empty({layers, 2, pages, kPageTokens, shape.kv_heads, shape.head_dim},
                      at::TensorOptions().device(model.device()).dtype(model.dtype()));
  if (memory_.is_cpu()) prefer_large_pages(memory_);
  for (std::int64_t layer = 0; layer < layers; ++layer)
    view_.push_back({memory_[layer][0], memory_[layer][1]});
}

bool KvPool::fits(const CausalLm& model) const {
  const ModelShape& shape = model.shape();
  return memory_.device() == model.device() && memory_.scalar_type() == model.dtype() &&
         memory_.size(0) == static_cast<std::int64_t>(shape.layers.size()) &&
         memory_.size(4) == shape.kv_heads && memory_.size(5) == shape.head_dim;
}

void KvPool::copy(std::span<const PageCopy> copies) {
  // A copy's target is never the source of a later one: it is a page that a sequence has just got.
  for (; !copies.empty(); copies = copies.subspan(std::min(copies.size(), kCopiedAtATime))) {
    std::vector<std::int64_t> from, to;
    for (const PageCopy& copy : copies.first(std::min(copies.size(), kCopiedAtATime))) {
      from.push_back(copy.from);
      to.push_back(copy.to);
    }
    const auto indices = [&](const std::vector<std::int64_t>& pages) {
      return at::tensor(at::ArrayRef<std::int64_t>(pages), at::kLong).to(memory_.device());
    };
    memory_.index_copy_(2, indices(to), memory_.index_select(2, indices(from)));
  }
}

}  // namespace antisd::inline inference
