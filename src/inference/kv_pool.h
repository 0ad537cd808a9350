// The memory for the keys and values of all sequences, in pages.
#pragma once

#include <cstdint>
#include <span>

#include "inference/page_ledger.h"
#include "inference/scheduler.h"
#include "model/causal_lm.h"

namespace antisd::inline inference {

class KvPool {
 public:
  KvPool(const CausalLm& model, std::int64_t pages);

  static std::int64_t page_bytes(const ModelShape& shape, at::ScalarType dtype);  // of all layers
  static std::int64_t page_bytes(const CausalLm& model) {
    return page_bytes(model.shape(), model.dtype());
  }

  bool fits(const CausalLm& model) const;  // same device, precision and shape of a page

  const KvView& view() const { return view_; }
  PageLedger& ledger() { return ledger_; }
  std::int64_t pages() const { return ledger_.total(); }
  at::Device device() const { return memory_.device(); }
  std::int64_t bytes() const { return static_cast<std::int64_t>(memory_.nbytes()); }

  // So many at a time, each held once more while it is copied.
  static constexpr std::size_t kCopiedAtATime = 16;
  void copy(std::span<const PageCopy> copies);

 private:
  at::Tensor memory_;  // [layers, 2, pages, kPageTokens, kv_heads, head_dim]
  KvView view_;
  PageLedger ledger_;
};

}  // namespace antisd::inline inference
