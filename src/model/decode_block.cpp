#include "model/decode_block.h"

#include "model/dense_forward.h"
#include "ops/cpu_decode_rows.h"

namespace antisd::inline model {

at::Tensor decode_block(const CausalLm& model, const KvView& cache, const DecodeRows& in) {
  const ModelShape& shape = model.shape();
  const std::int64_t q_width = shape.heads * shape.head_dim,
                     kv_width = shape.kv_heads * shape.head_dim;
  const auto attend = [&](std::size_t layer, const at::Tensor& q, const at::Tensor& k,
                          const at::Tensor& v) {
    at::Tensor mixed = at::empty_like(q);
    const float *query = q.const_data_ptr<float>(), *key = k.const_data_ptr<float>(),
                *value = v.const_data_ptr<float>();
    float *keys = cache[layer].keys.data_ptr<float>(),
          *values = cache[layer].values.data_ptr<float>(), *out = mixed.data_ptr<float>();
    const PagedRows pages{keys,
                          values,
                          shape.heads,
                          shape.kv_heads,
                          shape.head_dim,
                          shape.layers[layer].window,
                          1.0f / std::sqrt(static_cast<float>(shape.head_dim))};
    for (std::int64_t row = 0; row < in.rows; ++row) {
      std::copy_n(key + row * kv_width, kv_width, keys + in.slots[row] * kv_width);
      std::copy_n(value + row * kv_width, kv_width, values + in.slots[row] * kv_width);
      attend_row(pages, query + row * q_width, in.pages + row * in.most_pages,
                 in.positions[row] + 1, out + row * q_width);
    }
    return mixed;
  };
  const std::vector<std::int64_t> ids(in.ids, in.ids + in.rows);
  return dense_forward(model, {in.rows, ids.data(), in.positions}, attend);
}

}  // namespace antisd::inline model
