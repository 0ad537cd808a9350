#include "optim/gradient_sum.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "core/check.h"

namespace antisd::inline optim {

// A block on its way. Memory stays until it has arrived.
struct GradientSum::Sent {
  std::size_t block;
  at::Tensor staged, received;  // chunks by rank: to it, from it
  std::unique_ptr<Transfer> transfer;
};

// Called by the backward pass, after a parameter's gradient is complete.
class GradientSum::Hook : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(GradientSum& sum, std::size_t block) : sum_(sum), block_(block) {}
  void operator()(const torch::autograd::Variable&) override { sum_.count(block_); }

 private:
  GradientSum& sum_;
  std::size_t block_;
};

GradientSum::GradientSum(ParameterStore& parameters, Teams& teams, std::size_t in_flight)
    : parameters_(parameters), teams_(teams), in_flight_(in_flight) {
  const std::vector<ParameterBlock>& blocks = parameters_.blocks();
  sums_.resize(blocks.size());
  missing_.resize(blocks.size());
  seen_.assign(static_cast<std::size_t>(std::distance(parameters_.begin(), parameters_.end())),
               false);
  // The backward pass begins at the head and ends at the embedding, but a tied head is the
  // embedding, and whether it is complete is known only at the end. So both are last.
  for (std::size_t b = blocks.size(); b-- > 0;) {
    if (parameters_.trainable_elements(blocks[b]) > 0) order_.push_back(b);
  }
  std::ranges::stable_partition(order_, [&](std::size_t b) { return blocks[b].layer.has_value(); });
  for (const std::size_t b : order_) {
    for (const Parameter& parameter : parameters_.of(blocks[b])) {
      if (!parameter.spec.trainable) continue;
      torch::autograd::impl::set_post_acc_grad_hooks(parameter.value,
                                                     std::make_unique<Hook>(*this, b));
    }
  }
}

GradientSum::~GradientSum() {
  for (const Parameter& parameter : parameters_) {
    if (parameter.spec.trainable)
      torch::autograd::impl::set_post_acc_grad_hooks(parameter.value, nullptr);
  }
}

void GradientSum::begin_round(int active) {
  ANTISD_CHECK(!in_round_ && 0 < active && active <= teams_.all().size());
  active_ = active;
  in_round_ = true;
  sent_ = 0;
  for (const std::size_t b : order_) {
    missing_[b] = static_cast<std::size_t>(
        std::ranges::count_if(std::as_const(parameters_).of(parameters_.blocks()[b]),
                              [](const Parameter& p) { return p.spec.trainable; }));
  }
}

void GradientSum::count(std::size_t block) {
  if (!in_round_) return;  // a search for the cause of a NaN
  ANTISD_CHECK_LT(0u, missing_[block]);
  --missing_[block];
  while (sent_ < order_.size() && parameters_.blocks()[order_[sent_]].layer &&
         missing_[order_[sent_]] == 0)
    send(order_[sent_++]);
}

void GradientSum::send_above(std::size_t layer) {
  ANTISD_CHECK(in_round_);
  const auto is_above = [&](const ParameterBlock& block) {
    return block.layer && *block.layer > layer;
  };
  while (sent_ < order_.size() && is_above(parameters_.blocks()[order_[sent_]]))
    send(order_[sent_++]);
}

void GradientSum::end_round() {
  ANTISD_CHECK(in_round_);
  while (sent_ < order_.size())
    send(order_[sent_++]);
  while (!under_way_.empty())
    add_oldest();
  in_round_ = false;
}

void GradientSum::send(std::size_t block) {
  const at::NoGradGuard no_grad;
  while (under_way_.size() >= in_flight_)
    add_oldest();
  const ParameterBlock& whole = parameters_.blocks()[block];
  const std::int64_t chunk = teams_.chunk_elements(parameters_.trainable_elements(whole));
  at::Tensor chunks = at::zeros({chunk * teams_.all().size()}, whole.values.options());
  const std::span<Parameter> parameters = parameters_.of(whole);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    at::Tensor& gradient = parameters[i].value.mutable_grad();
    if (!parameters[i].spec.trainable || !gradient.defined()) continue;
    chunks.narrow(0, parameters_.place_in_block(parameters[i]), parameters[i].spec.count())
        .copy_(gradient.reshape({-1}));
    gradient.reset();
    seen_[whole.first + i] = true;
  }
  Sent sent{.block = block, .staged = teams_.by_rank(chunks), .received = {}, .transfer = {}};
  sent.received = at::empty_like(sent.staged);
  sent.transfer = teams_.all().exchange_parts(
      {.own = sent.staged.const_data_ptr(),
       .received = sent.received.mutable_data_ptr(),
       .part_bytes = chunk * static_cast<std::int64_t>(sent.staged.element_size()),
       .kind = sent.staged.is_cpu() ? MemoryKind::kHost : MemoryKind::kGpu});
  under_way_.push_back(std::move(sent));
}

void GradientSum::add_oldest() {
  const at::NoGradGuard no_grad;
  const Sent sent = std::move(under_way_.front());
  under_way_.pop_front();
  sent.transfer->wait();
  const std::int64_t chunk = sent.received.numel() / teams_.all().size();
  at::Tensor& sum = sums_[sent.block];
  for (int rank = 0; rank < active_; ++rank) {
    const at::Tensor part = sent.received.narrow(0, rank * chunk, chunk);
    if (sum.defined()) {
      sum.add_(part);
    } else {
      sum = at::empty({chunk}, part.options().dtype(at::kFloat)).copy_(part);
    }
  }
}

std::vector<at::Tensor> GradientSum::take_parts() {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> own = std::exchange(sums_, std::vector<at::Tensor>(sums_.size()));
  std::vector<at::Tensor> parts = own;
  std::vector<std::unique_ptr<Transfer>> transfers;
  for (std::size_t b = 0; b < own.size() && teams_.replicas().size() > 1; ++b) {
    if (!own[b].defined()) continue;
    parts[b] = at::empty({own[b].numel() * teams_.replicas().size()}, own[b].options());
    transfers.push_back(teams_.replicas().collect_parts(
        {.own = own[b].const_data_ptr(),
         .received = parts[b].mutable_data_ptr(),
         .part_bytes = static_cast<std::int64_t>(own[b].nbytes()),
         .kind = own[b].is_cpu() ? MemoryKind::kHost : MemoryKind::kGpu}));
  }
  for (const auto& transfer : transfers)
    transfer->wait();
  for (std::size_t b = 0; b < parts.size(); ++b) {
    if (!parts[b].defined()) continue;
    const auto [begin, end] = parameters_.range_of(parameters_.blocks()[b], teams_.part());
    parts[b] = parts[b].narrow(0, 0, end - begin);
  }
  return parts;
}

std::vector<bool> GradientSum::has_gradients() {
  std::string own;
  for (const bool seen : seen_)
    own += seen ? '1' : '0';
  std::vector<bool> any(seen_.size(), false);
  for (const std::string& one : teams_.all().gather(own)) {
    for (std::size_t p = 0; p < any.size(); ++p)
      any[p] = any[p] || one[p] == '1';
  }
  return any;
}

void GradientSum::drop() {
  in_round_ = false;
  // After an error in the middle of a round: other ranks may still write into this memory, and the
  // run is about to end. So it is never freed.
  static std::mutex mutex;
  static auto& kept = *new std::vector<Sent>();
  const std::lock_guard lock(mutex);
  for (; !under_way_.empty(); under_way_.pop_front())
    kept.push_back(std::move(under_way_.front()));
  std::ranges::fill(sums_, at::Tensor());
  seen_.assign(seen_.size(), false);
}

}  // namespace antisd::inline optim
