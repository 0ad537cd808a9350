#include "ops/lora.h"

#include <algorithm>

#include "core/check.h"
#include "ops/backend.h"
#include "ops/products.h"
#include "ops/tile_product.h"

#ifdef ANTISD_CUDA
#include "ops/kernels/lora.h"
#endif

namespace antisd::inline ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kLoraTokensPerTask = 64, kLoraRowsPerTask = 64;

// y += z b^T, y: [tokens, rows] and z: [tokens, rank], columns of wider matrices.
void add_up_projection(at::Tensor y, const at::Tensor& z, const at::Tensor& b) {
  if (!y.is_cpu()) {
    if (y.scalar_type() == z.scalar_type()) {
      y.addmm_(z, b.t());
    } else {
      at::addmm_out(y, y, z, b.t(), y.scalar_type());
    }
    return;
  }
  const at::Tensor factors = b.t().contiguous();  // [rank, rows]
  const std::int64_t rank = z.size(1), rows = y.size(1), z_row = z.stride(0), y_row = y.stride(0);
  const float *from = z.const_data_ptr<float>(), *right = factors.const_data_ptr<float>();
  float* to = y.mutable_data_ptr<float>();
  at::parallel_for(0, z.size(0), kLoraTokensPerTask, [&](std::int64_t begin, std::int64_t end) {
    tile_product(end - begin, rows, rank, {from + begin * z_row, z_row, 1}, right, rows,
                 to + begin * y_row, y_row, /*add=*/true);
  });
}

// dz = dy b
void set_down_gradient(at::Tensor dz, const at::Tensor& dy, const at::Tensor& b) {
  if (!dz.is_cpu()) {
    dz.copy_(dy.mm(b));
    return;
  }
  const std::int64_t rank = dz.size(1), rows = dy.size(1), z_row = dz.stride(0),
                     y_row = dy.stride(0);
  const float *from = dy.const_data_ptr<float>(), *right = b.const_data_ptr<float>();
  float* to = dz.mutable_data_ptr<float>();
  at::parallel_for(0, dy.size(0), kLoraTokensPerTask, [&](std::int64_t begin, std::int64_t end) {
    tile_product(end - begin, rank, rows, {from + begin * y_row, y_row, 1}, right, rank,
                 to + begin * z_row, z_row, /*add=*/false);
  });
}

// db = dy^T z
void set_up_gradient(at::Tensor db, const at::Tensor& dy, const at::Tensor& z) {
  if (!db.is_cpu()) {
    at::mm_out(db, dy.t(), z);
    return;
  }
  const std::int64_t rank = z.size(1), tokens = dy.size(0), z_row = z.stride(0),
                     y_row = dy.stride(0);
  if (tokens == 0) {
    db.zero_();
    return;
  }
  const float *from = dy.const_data_ptr<float>(), *right = z.const_data_ptr<float>();
  float* to = db.mutable_data_ptr<float>();
  at::parallel_for(0, db.size(0), kLoraRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
    tile_product(end - begin, rank, tokens, {from + begin, 1, y_row}, right, z_row,
                 to + begin * rank, rank, /*add=*/false);
  });
}

// Calls body(columns of y, columns of z, rows of b) for each part.
template <typename Body>
void for_each_lora_part(const std::vector<std::int64_t>& places, std::int64_t rank,
                        const Body& body) {
  std::int64_t z = 0, b = 0;
  for (std::size_t i = 0; i < places.size(); i += 2) {
    const std::int64_t first = places[i], rows = places[i + 1];
    body(first, rows, z, b);
    z += rank;
    b += rows;
  }
}

#ifdef ANTISD_CUDA
// Whether two kernels compute what the adapter adds to y: those of few rows, as in decoding.
bool suits_fused_lora(const at::Tensor& y, const at::Tensor& x, const at::Tensor& a,
                      const at::Tensor& b, const std::vector<std::int64_t>& places) {
  const auto is_even = [](std::int64_t n) { return n % 2 == 0; };
  const auto address = [](const at::Tensor& t) {
    return reinterpret_cast<std::uintptr_t>(t.const_data_ptr());
  };
  return x.is_cuda() && x.scalar_type() != at::kFloat && x.size(0) <= kLoraFusedRows &&
         x.size(1) % 64 == 0 && b.size(1) % 4 == 0 && b.size(1) <= kLoraFusedRank &&
         std::ssize(places) <= 2 * kLoraFusedParts && std::ranges::all_of(places, is_even) &&
         is_even(y.stride(0)) && address(y) % 8 == 0 && address(x) % 16 == 0 &&
         address(a) % 16 == 0 && address(b) % 8 == 0 && x.is_contiguous() && a.is_contiguous() &&
         b.is_contiguous();
}

// Adds to y; returns z.
at::Tensor fused_lora(const at::Tensor& y, const at::Tensor& x, const at::Tensor& a,
                      const at::Tensor& b, const std::vector<std::int64_t>& places, double scale) {
  const at::Tensor z = at::empty({x.size(0), a.size(0)}, x.options());
  const at::Tensor sums =
      at::empty({lora_sums(x.size(0), x.size(1), a.size(0))}, x.options().dtype(at::kFloat));
  LoraProduct product = {.type = element_type(x),
                         .x = x.const_data_ptr(),
                         .rows = x.size(0),
                         .columns = x.size(1),
                         .a = a.const_data_ptr(),
                         .b = b.const_data_ptr(),
                         .rank = b.size(1),
                         .scale = static_cast<float>(scale),
                         .parts = static_cast<int>(places.size() / 2),
                         .first = {},
                         .outputs = {},
                         .z = z.mutable_data_ptr(),
                         .y_is_fp32 = y.scalar_type() == at::kFloat,
                         .y = y.mutable_data_ptr(),
                         .y_row = y.stride(0),
                         .sums = sums.mutable_data_ptr<float>()};
  for (int i = 0; i < product.parts; ++i) {
    product.first[i] = places[2 * i];
    product.outputs[i] = places[2 * i + 1];
  }
  launch_lora(product, current_stream(x));
  return z;
}
#endif

struct AddLora : torch::autograd::Function<AddLora> {
  // places: first row and rows of each part.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& y, const at::Tensor& x,
                            const at::Tensor& a, const at::Tensor& b,
                            const std::vector<std::int64_t>& places, double scale, LoraSum sum) {
    context->saved_data["places"] = places;
    context->saved_data["scale"] = scale;
    const bool in_place = sum == LoraSum::kInPlace;
    if (in_place) context->mark_dirty({y});
    at::Tensor result = in_place ? y : sum == LoraSum::kNew ? y.clone() : y.view_as(y);
#ifdef ANTISD_CUDA
    if (sum != LoraSum::kLeftOut && suits_fused_lora(result, x, a, b, places)) {
      context->save_for_backward({x, a, b, fused_lora(result, x, a, b, places, scale)});
      return result;
    }
#endif
    const at::Tensor z = product_nt(x, a, {}).mul_(scale);  // [tokens, parts * rank]
    context->save_for_backward({x, a, b, z});
    if (sum == LoraSum::kLeftOut) return result;
    const std::int64_t rank = b.size(1);
    for_each_lora_part(
        places, rank,
        [&](std::int64_t first, std::int64_t rows, std::int64_t z_at, std::int64_t b_at) {
          add_up_projection(result.narrow(1, first, rows), z.narrow(1, z_at, rank),
                            b.narrow(0, b_at, rows));
        });
    return result;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &a = saved[1], &b = saved[2], &z = saved[3];
    const std::vector<std::int64_t> places = context->saved_data["places"].toIntVector();
    const at::Tensor dy = gradients[0].to(x.scalar_type()).contiguous();
    const std::int64_t rank = b.size(1);
    at::Tensor dz = at::empty_like(z), db = at::empty_like(b);
    for_each_lora_part(
        places, rank,
        [&](std::int64_t first, std::int64_t rows, std::int64_t z_at, std::int64_t b_at) {
          const at::Tensor part = dy.narrow(1, first, rows);
          set_down_gradient(dz.narrow(1, z_at, rank), part, b.narrow(0, b_at, rows));
          set_up_gradient(db.narrow(0, b_at, rows), part, z.narrow(1, z_at, rank));
        });
    dz.mul_(context->saved_data["scale"].toDouble());
    variable_list result(7);
    result[0] = gradients[0];
    if (context->needs_input_grad(1)) result[1] = product_nn(dz, a);
    result[2] = product_tn(dz, x);
    result[3] = db;
    return result;
  }
};

}  // namespace

at::Tensor add_lora(const at::Tensor& y, const at::Tensor& x, const LoraWeights& lora,
                    LoraSum sum) {
  ANTISD_CHECK(x.dim() == 2 && lora.a.dim() == 2 && y.stride(1) == 1);
  ANTISD_CHECK_EQ(lora.a.size(0), static_cast<std::int64_t>(lora.parts.size()) * lora.rank());
  std::vector<std::int64_t> places;
  for (const LoraPart& part : lora.parts)
    places.insert(places.end(), {part.first_row, part.rows});
  return AddLora::apply(y, x, lora.a, lora.b, places, lora.scale, sum);
}

}  // namespace antisd::inline ops
