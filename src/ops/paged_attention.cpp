#include "ops/paged_attention.h"

#include "core/check.h"
#include "ops/backend.h"
#include "ops/cpu_decode_rows.h"

#ifdef ANTISD_CUDA
#include "ops/kernels/decode_attention.h"
#include "ops/kernels/store_rows.h"
#endif

namespace antisd::inline ops {
namespace {

void check_cache(const PagedKv& kv) {
  ANTISD_CHECK_EQ(kv.keys.dim(), 4);
  ANTISD_CHECK_EQ(kv.keys.size(1), kPageTokens);
  ANTISD_CHECK(kv.keys.is_contiguous() && kv.values.is_contiguous());
  ANTISD_CHECK(kv.keys.sizes() == kv.values.sizes());
}

at::Tensor decode_on_cpu(const at::Tensor& q, const PagedKv& kv, const PageTable& table,
                         std::int64_t window, double scale) {
  ANTISD_CHECK(q.scalar_type() == at::kFloat && kv.keys.scalar_type() == at::kFloat);
  at::Tensor out = at::empty_like(q);
  const std::int64_t heads = q.size(1), dim = q.size(2), most_pages = table.pages.size(1);
  const PagedRows rows{kv.keys.const_data_ptr<float>(),
                       kv.values.const_data_ptr<float>(),
                       heads,
                       kv.keys.size(2),
                       dim,
                       window,
                       static_cast<float>(scale)};
  const auto* pages = table.pages.const_data_ptr<std::int32_t>();
  const auto* lengths = table.lengths.const_data_ptr<std::int32_t>();
  at::parallel_for(0, q.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      attend_row(rows, q.const_data_ptr<float>() + row * heads * dim, pages + row * most_pages,
                 lengths[row], out.data_ptr<float>() + row * heads * dim);
    }
  });
  return out;
}

#ifdef ANTISD_CUDA
// All zero before and after a call, so one set serves every layer; work on a device is in order. A
// set that has become too small stays: captured steps hold its address.
at::Tensor zero_counters(std::int64_t count, const at::Tensor& like) {
  thread_local std::vector<std::vector<at::Tensor>> sets;  // by device, growing
  const auto device = static_cast<std::size_t>(like.device().index());
  if (sets.size() <= device) sets.resize(device + 1);
  std::vector<at::Tensor>& own = sets[device];
  if (own.empty() || own.back().numel() < count)
    own.push_back(at::zeros({2 * count}, like.options().dtype(at::kInt)));
  return own.back();
}

at::Tensor decode_on_gpu(const at::Tensor& q, const PagedKv& kv, const PageTable& table,
                         std::int64_t window, double scale) {
  const DecodeAttentionShape shape{static_cast<int>(q.size(0)),
                                   static_cast<int>(q.size(1)),
                                   static_cast<int>(kv.keys.size(2)),
                                   static_cast<int>(q.size(2)),
                                   kPageTokens,
                                   static_cast<int>(table.pages.size(1)),
                                   static_cast<int>(window)};
  const DecodeWorkspace workspace = decode_attention_workspace(shape);
  const at::Tensor partials = at::empty({workspace.floats}, q.options().dtype(at::kFloat));
  const at::Tensor counters = zero_counters(workspace.counters, q);
  at::Tensor out = at::empty_like(q);
  launch_decode_attention(element_type(q), shape, q.const_data_ptr(), kv.keys.const_data_ptr(),
                          kv.values.const_data_ptr(), table.pages.const_data_ptr<std::int32_t>(),
                          table.lengths.const_data_ptr<std::int32_t>(), scale,
                          out.mutable_data_ptr(), partials.mutable_data_ptr<float>(),
                          counters.mutable_data_ptr<std::int32_t>(), current_stream(q));
  return out;
}
#endif

}  // namespace

at::Tensor decode_attention(const at::Tensor& q, const PagedKv& kv, const PageTable& table,
                            std::int64_t window, double scale) {
  check_cache(kv);
  ANTISD_CHECK(q.dim() == 3 && q.is_contiguous());
  ANTISD_CHECK_EQ(q.size(1) % kv.keys.size(2), 0);
  ANTISD_CHECK_EQ(q.size(2), kv.keys.size(3));
  ANTISD_CHECK_EQ(table.pages.size(0), q.size(0));
  ANTISD_CHECK_EQ(table.lengths.size(0), q.size(0));
  ANTISD_CHECK(table.pages.scalar_type() == at::kInt && table.pages.is_contiguous());
  ANTISD_CHECK(table.lengths.scalar_type() == at::kInt && table.lengths.is_contiguous());
#ifdef ANTISD_CUDA
  if (q.is_cuda()) return decode_on_gpu(q, kv, table, window, scale);
#endif
  return decode_on_cpu(q, kv, table, window, scale);
}

void store_kv(const at::Tensor& k, const at::Tensor& v, const at::Tensor& slots,
              const PagedKv& kv) {
  check_cache(kv);
  ANTISD_CHECK_EQ(slots.numel(), k.size(0));
  ANTISD_CHECK(slots.scalar_type() == at::kLong && k.sizes() == v.sizes());
#ifdef ANTISD_CUDA
  if (k.is_cuda()) {
    const at::Tensor keys = k.contiguous(), values = v.contiguous();
    launch_store_rows(keys.const_data_ptr(), values.const_data_ptr(),
                      slots.const_data_ptr<std::int64_t>(), k.size(0),
                      k.size(1) * k.size(2) * k.element_size(), kv.keys.mutable_data_ptr(),
                      kv.values.mutable_data_ptr(), current_stream(k));
    return;
  }
#endif
  const std::vector<std::int64_t> rows = {-1, kv.keys.size(2), kv.keys.size(3)};
  kv.keys.view(rows).index_copy_(0, slots, k);
  kv.values.view(rows).index_copy_(0, slots, v);
}

}  // namespace antisd::inline ops
