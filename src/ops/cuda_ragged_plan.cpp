#include "ops/cuda_ragged_plan.h"

#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include <cuda_runtime.h>
#include <cudnn_frontend.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include "core/error.h"

// The frontend asks this library for every function. libtorch_cuda needs it, so it is loaded.
namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;
}

namespace antisd::inline ops {
namespace {

namespace fe = cudnn_frontend;
using TensorPointer = std::shared_ptr<fe::graph::Tensor_attributes>;

// Names of the operands.
enum Uid : std::int64_t {
  kQueries = 1,
  kKeys,
  kValues,
  kOut,
  kLse,
  kOutGradient,
  kQueryGradient,
  kKeyGradient,
  kValueGradient,
  kQueryLengths,
  kKeyLengths,
  kQueryOffsets,
  kKeyOffsets,
  kValueOffsets,
  kOutOffsets,
  kLseOffsets,
};

bool open_cudnn() {
  static const bool opened = [] {
    fe::cudnn_dlhandle = dlopen("libcudnn.so.9", RTLD_NOW);
    return fe::cudnn_dlhandle != nullptr;
  }();
  return opened;
}

// The graph of one call.
class RaggedGraph {
 public:
  explicit RaggedGraph(const RaggedCall& call)
      : call_(call), graph_(std::make_shared<fe::graph::Graph>()) {
    graph_
        ->set_io_data_type(call.type == ElementType::kFloat16 ? fe::DataType_t::HALF
                                                              : fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT)
        .set_sm_version(call.capability);
    query_offsets_ = integers(kQueryOffsets, call.sequences + 1);
    key_offsets_ = integers(kKeyOffsets, call.sequences + 1);
    value_offsets_ = integers(kValueOffsets, call.sequences + 1);
    out_offsets_ = integers(kOutOffsets, call.sequences + 1);
    lse_offsets_ = integers(kLseOffsets, call.sequences + 1);
    query_lengths_ = integers(kQueryLengths, call.sequences);
    key_lengths_ = integers(kKeyLengths, call.sequences);
    if (call.backward) {
      add_backward();
    } else {
      add_forward();
    }
  }

  std::shared_ptr<fe::graph::Graph> graph() const { return graph_; }

 private:
  TensorPointer integers(Uid uid, std::int64_t count) {
    return graph_->tensor(fe::graph::Tensor_attributes()
                              .set_uid(uid)
                              .set_dim({count, 1, 1, 1})
                              .set_stride({1, 1, 1, 1})
                              .set_data_type(fe::DataType_t::INT32));
  }

  // [sequences, heads, length, head_dim] of rows of all heads. Operands of one layout have offsets
  // of their own, because a graph may ask for each tensor's; they lie at one address.
  void set_queries(fe::graph::Tensor_attributes& tensor, Uid uid,
                   const TensorPointer& offsets) const {
    const std::int64_t stride = call_.query_stride;
    tensor.set_uid(uid)
        .set_dim({call_.sequences, call_.heads, call_.query_length, call_.head_dim})
        .set_stride({call_.query_length * stride, call_.head_dim, stride, 1})
        .set_ragged_offset(offsets);
  }
  void set_keys(fe::graph::Tensor_attributes& tensor, Uid uid, const TensorPointer& offsets) const {
    const std::int64_t stride = call_.key_stride;
    tensor.set_uid(uid)
        .set_dim({call_.sequences, call_.kv_heads, call_.key_length, call_.head_dim})
        .set_stride({call_.key_length * stride, call_.head_dim, stride, 1})
        .set_ragged_offset(offsets);
  }
  // Token by token. With the statistics of one head after those of another, the backward pass gives
  // zeros where the rows of all sequences are bounded (set_max_total_seq_len_q).
  void set_lse(fe::graph::Tensor_attributes& tensor) const {
    tensor.set_uid(kLse)
        .set_dim({call_.sequences, call_.heads, call_.query_length, 1})
        .set_stride({call_.query_length * call_.lse_stride, 1, call_.lse_stride, 1})
        .set_data_type(fe::DataType_t::FLOAT)
        .set_ragged_offset(lse_offsets_);
  }

  TensorPointer queries(Uid uid, const TensorPointer& offsets) {
    fe::graph::Tensor_attributes tensor;
    set_queries(tensor, uid, offsets);
    return graph_->tensor(tensor);
  }
  TensorPointer keys(Uid uid, const TensorPointer& offsets) {
    fe::graph::Tensor_attributes tensor;
    set_keys(tensor, uid, offsets);
    return graph_->tensor(tensor);
  }

  // The last query sees the last key. Where all sequences have as many keys as queries the first
  // sees the first too, and the kernels for that are faster.
  template <typename Attributes>
  void set_mask(Attributes& attributes) const {
    attributes
        .set_diagonal_alignment(call_.prefix ? fe::DiagonalAlignment_t::BOTTOM_RIGHT
                                             : fe::DiagonalAlignment_t::TOP_LEFT)
        .set_diagonal_band_right_bound(0)
        .set_padding_mask(true)
        .set_seq_len_q(query_lengths_)
        .set_seq_len_kv(key_lengths_)
        .set_attn_scale(call_.scale);
    if (call_.window > 0) attributes.set_diagonal_band_left_bound(call_.window);
  }

  void add_forward() {
    fe::graph::SDPA_attributes attributes;
    attributes.set_name("attention").set_generate_stats(true);
    set_mask(attributes);
    auto [out, lse] = graph_->sdpa(queries(kQueries, query_offsets_), keys(kKeys, key_offsets_),
                                   keys(kValues, value_offsets_), attributes);
    set_queries(out->set_output(true), kOut, out_offsets_);
    set_lse(lse->set_output(true));
  }

  void add_backward() {
    fe::graph::SDPA_backward_attributes attributes;
    attributes.set_name("attention_backward").set_deterministic_algorithm(call_.fixed_order);
    set_mask(attributes);
    // Without these, sums would have sequences x length rows.
    attributes.set_max_total_seq_len_q(call_.query_rows).set_max_total_seq_len_kv(call_.key_rows);
    fe::graph::Tensor_attributes lse;
    set_lse(lse);
    auto [dq, dk, dv] =
        graph_->sdpa_backward(queries(kQueries, query_offsets_), keys(kKeys, key_offsets_),
                              keys(kValues, value_offsets_), queries(kOut, out_offsets_),
                              queries(kOutGradient, out_offsets_), graph_->tensor(lse), attributes);
    set_queries(dq->set_output(true), kQueryGradient, query_offsets_);
    set_keys(dk->set_output(true), kKeyGradient, key_offsets_);
    set_keys(dv->set_output(true), kValueGradient, value_offsets_);
  }

  const RaggedCall& call_;
  std::shared_ptr<fe::graph::Graph> graph_;
  TensorPointer query_offsets_, key_offsets_, value_offsets_, out_offsets_, lse_offsets_;
  TensorPointer query_lengths_, key_lengths_;
};

void check_status(fe::error_object status, const char* what) {
  if (status.is_good()) return;
  throw RunError(
      fmt::format("attention by cuDNN {}: {}: {}", cudnn_version(), what, status.get_message()));
}

// All plans of the process. A shape without a kernel has an empty one, so that it is asked once.
class PlanCache {
 public:
  const RaggedPlan* find(const RaggedCall& call, cudnnContext* handle);

 private:
  std::mutex mutex_;
  std::map<RaggedCall, std::unique_ptr<RaggedPlan>> plans_;
};

}  // namespace

class RaggedPlan {
 public:
  explicit RaggedPlan(const RaggedCall& call) : graph(RaggedGraph(call).graph()) {}

  std::shared_ptr<fe::graph::Graph> graph;
  std::int64_t workspace = 0;
};

const RaggedPlan* PlanCache::find(const RaggedCall& call, cudnnContext* handle) {
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = plans_.try_emplace(call);
  if (is_new) {
    auto plan = std::make_unique<RaggedPlan>(call);
    if (plan->graph->build(handle, {fe::HeurMode_t::A}).is_good()) {
      check_status(plan->graph->get_workspace_size(plan->workspace), "workspace");
      entry->second = std::move(plan);
    }
  }
  return entry->second.get();
}

std::int64_t cudnn_version() {
  return open_cudnn() ? static_cast<std::int64_t>(fe::detail::get_backend_version()) : 0;
}

const RaggedPlan* find_ragged_plan(const RaggedCall& call, cudnnContext* handle) {
  // Never destroyed: cuDNN may be gone when the process ends.
  static PlanCache& cache = *new PlanCache;
  return open_cudnn() ? cache.find(call, handle) : nullptr;
}

std::int64_t ragged_workspace(const RaggedPlan& plan) {
  return plan.workspace;
}

void run_ragged_plan(const RaggedPlan& plan, cudnnContext* handle, const RaggedPointers& pointers,
                     void* workspace) {
  const auto in = [](const void* pointer) { return const_cast<void*>(pointer); };
  std::unordered_map<std::int64_t, void*> operands = {{kQueries, in(pointers.q)},
                                                      {kKeys, in(pointers.k)},
                                                      {kValues, in(pointers.v)},
                                                      {kOut, pointers.out},
                                                      {kLse, pointers.lse},
                                                      {kQueryLengths, in(pointers.query_lengths)},
                                                      {kKeyLengths, in(pointers.key_lengths)},
                                                      {kQueryOffsets, in(pointers.query_offsets)},
                                                      {kKeyOffsets, in(pointers.key_offsets)},
                                                      {kValueOffsets, in(pointers.key_offsets)},
                                                      {kOutOffsets, in(pointers.query_offsets)},
                                                      {kLseOffsets, in(pointers.lse_offsets)}};
  if (pointers.gradient != nullptr) {
    operands.insert({{kOutGradient, in(pointers.gradient)},
                     {kQueryGradient, pointers.dq},
                     {kKeyGradient, pointers.dk},
                     {kValueGradient, pointers.dv}});
  }
  check_status(plan.graph->execute(handle, operands, workspace), "launch");
}

}  // namespace antisd::inline ops
