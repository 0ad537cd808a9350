#include "optim/adamw.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/core/grad_mode.h>

#include "core/check.h"
#include "dist/agreement.h"
#include "ops/adamw.h"
#include "ops/squared_norms.h"

namespace antisd::inline optim {

namespace {

constexpr std::size_t kBlocksInFlight = 2, kAllBlocks = std::numeric_limits<std::size_t>::max();

// `own` is this rank's part of `all`.
std::unique_ptr<Transfer> collect(Communicator& ranks, const at::Tensor& own,
                                  const at::Tensor& all) {
  return ranks.collect_parts({.own = own.const_data_ptr(),
                              .received = all.mutable_data_ptr(),
                              .part_bytes = static_cast<std::int64_t>(own.nbytes()),
                              .kind = all.is_cpu() ? MemoryKind::kHost : MemoryKind::kGpu});
}

}  // namespace

AdamWOptions adamw_options(const OptimConfig& config) {
  ANTISD_CHECK_EQ(config.betas.size(), 2u);  // RunConfig::validate
  return {.beta1 = config.betas[0],
          .beta2 = config.betas[1],
          .eps = config.eps,
          .weight_decay = config.weight_decay,
          .grad_clip = config.grad_clip};
}

AdamW::AdamW(CausalLm& model, AdamWOptions options, Communicator& ranks, ShardOptions shard)
    : model_(model),
      parameters_(model.parameters()),
      options_(options),
      ranks_(ranks),
      offload_(shard.offload),
      streamed_elements_(shard.streamed_elements) {
  parameters_.require_gradients();
  if (ranks.size() == 1 && !shard.even_alone) {
    fold_ = std::make_unique<GradientFold>(parameters_);
    parameters_.make_optimizer_state({}, offload_);
    return;
  }
  teams_ = std::make_unique<Teams>(ranks, shard.members);
  sum_ = std::make_unique<GradientSum>(parameters_, *teams_,
                                       shard.gradients ? kBlocksInFlight : kAllBlocks);
  if (shard.weights && (teams_->team().size() > 1 || shard.even_alone)) {
    shards_ = std::make_unique<WeightShards>(parameters_, *teams_);
    model_.set_layer_source(shards_.get());
    whole_between_ = shard.whole_between;
    end_passes();  // before more memory is needed
  }
  agree(ranks, [&] { parameters_.make_optimizer_state(teams_->part(), offload_); });
  const at::NoGradGuard no_grad;
  for (Parameter& parameter : parameters_)
    if (parameter.master.defined()) parameter.master.view({-1}).copy_(own_values(parameter));
}

AdamW::~AdamW() {
  if (shards_) model_.set_layer_source(nullptr);
}

void AdamW::make_passes(int passes, const std::function<void()>& work) {
  if (!shards_) return work();
  shards_->divide();
  shards_->make_passes(passes, work);
}

void AdamW::end_passes() {
  if (!shards_) return;
  whole_between_ ? shards_->gather() : shards_->divide();
}

void AdamW::make_whole() {
  if (shards_) shards_->gather();
}

void AdamW::begin_round(int active) {
  if (fold_) return fold_->begin();
  sum_->begin_round(active);
  if (shards_) shards_->begin_down([this](std::size_t layer) { sum_->send_above(layer); });
}

void AdamW::end_round() {
  if (fold_) return fold_->end();
  if (shards_) shards_->end_down();
  sum_->end_round();
}

// The elements that this rank updates.
at::Tensor AdamW::own_values(const Parameter& parameter) const {
  if (parameter.own_count == 0) return {};
  if (shards_ && shards_->divided()) {
    const ParameterBlock& block = parameters_.block_of(parameter);
    if (shards_->divides(block)) {
      const std::int64_t place = parameters_.place_in_block(parameter) + parameter.own_begin -
                                 parameters_.range_of(block, teams_->part()).first;
      return shards_->part(block).narrow(0, place, parameter.own_count);
    }
  }
  return parameter.value.detach().view({-1}).narrow(0, parameter.own_begin, parameter.own_count);
}

void AdamW::drop_gradients() {
  parameters_.drop_gradients();
  if (fold_) fold_->drop();
  if (sum_) sum_->drop();
}

// With one process: each parameter that has a gradient.
std::vector<AdamW::Piece> AdamW::own_pieces() {
  std::vector<Piece> pieces;
  for (Parameter& parameter : parameters_) {
    if (!parameter.spec.trainable) continue;
    const at::Tensor& own = parameter.value.grad();
    // 16-bit gradients that were not taken come from a single backward pass and need no sum.
    ANTISD_CHECK(!(parameter.gradient_sum.defined() && own.defined()));
    const at::Tensor& gradient = parameter.gradient_sum.defined() ? parameter.gradient_sum : own;
    if (gradient.defined()) pieces.push_back({&parameter, gradient.contiguous()});
  }
  return pieces;
}

std::vector<AdamW::Piece> AdamW::pieces_of_ranks() {
  std::vector<Piece> pieces;
  const std::vector<bool> has_gradient = sum_->has_gradients();
  const std::vector<at::Tensor> parts = sum_->take_parts();
  for (std::size_t b = 0; b < parts.size(); ++b) {
    const at::Tensor& part = parts[b];
    if (!part.defined()) continue;
    const ParameterBlock& block = parameters_.blocks()[b];
    const std::int64_t begin = parameters_.range_of(block, teams_->part()).first;
    const std::span<Parameter> parameters = parameters_.of(block);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      Parameter& parameter = parameters[i];
      if (parameter.own_count == 0 || !has_gradient[block.first + i]) continue;
      const std::int64_t place = parameters_.place_in_block(parameter) + parameter.own_begin;
      pieces.push_back({&parameter, part.narrow(0, place - begin, parameter.own_count)});
    }
  }
  return pieces;
}

// The sums of squares of the parameters' whole gradients, in the order of the store. A parameter's
// partial sums are added in the order of its elements, whichever rank has computed them.
std::vector<double> AdamW::squares_by_parameter(std::span<const Piece> pieces) const {
  std::vector<at::Tensor> gradients;
  for (const Piece& piece : pieces)
    gradients.push_back(piece.gradient);
  const std::vector<std::vector<double>> partial = fetch_partial_squares(gradients);
  std::vector<double> message;  // parameter, count, sums; and so on
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    message.push_back(static_cast<double>(pieces[i].parameter - &*parameters_.begin()));
    message.push_back(static_cast<double>(partial[i].size()));
    message.insert(message.end(), partial[i].begin(), partial[i].end());
  }
  // The members' parts follow each other in every block, so their order is that of the elements.
  const std::vector<double> all = teams_ ? gather_values(teams_->team(), message) : message;
  std::vector<double> squares(
      static_cast<std::size_t>(std::distance(parameters_.begin(), parameters_.end())), 0.0);
  for (std::size_t i = 0; i < all.size();) {
    double& square = squares[static_cast<std::size_t>(all[i])];
    const std::size_t end = i + 2 + static_cast<std::size_t>(all[i + 1]);
    for (i += 2; i < end; ++i)
      square += all[i];
  }
  return squares;
}

UpdateReport AdamW::step(double lr, double gradient_scale) {
  const at::NoGradGuard no_grad;
  std::vector<Piece> pieces = teams_ ? pieces_of_ranks() : own_pieces();
  drop_gradients();

  UpdateReport report;
  const std::vector<double> squares = squares_by_parameter(pieces);
  double total = 0;
  for (std::size_t i = 0; i < squares.size(); ++i) {
    total += squares[i];
    if (!std::isfinite(squares[i]) && report.culprit.empty())
      report.culprit = (parameters_.begin() + std::ptrdiff_t(i))->name();
  }
  report.grad_norm = std::sqrt(total) / gradient_scale;
  if (!std::isfinite(report.grad_norm)) {
    end_passes();
    return report;
  }
  // The epsilon is torch.nn.utils.clip_grad_norm_'s.
  report.clip_scale = std::min(1.0, options_.grad_clip / (report.grad_norm + 1e-6));
  std::optional<StreamedUpdate> streamed = start_streaming();  // before anything changes
  report.applied = true;
  ++steps_;
  const AdamWFactors factors = adamw_factors({.lr = lr,
                                              .beta1 = options_.beta1,
                                              .beta2 = options_.beta2,
                                              .eps = options_.eps,
                                              .weight_decay = options_.weight_decay},
                                             steps_, report.clip_scale / gradient_scale);
  update(std::move(pieces), factors, streamed);
  if (teams_) collect_values();
  end_passes();
  return report;
}

std::optional<StreamedUpdate> AdamW::start_streaming() const {
  if (offload_ == Offload::kNone) return std::nullopt;
  std::int64_t largest = kUpdateBlock;
  for (const ParameterBlock& block : parameters_.blocks())
    if (block.first_moments.defined()) largest = std::max(largest, block.first_moments.numel());
  const bool has_masters = model_.dtype() != at::kFloat;
  return StreamedUpdate({.offload = has_masters ? offload_ : Offload::kMoments,
                         .device = model_.device(),
                         .elements = std::min(streamed_elements_, largest)});
}

void AdamW::update(std::vector<Piece> pieces, const AdamWFactors& factors,
                   std::optional<StreamedUpdate>& streamed) {
  if (!streamed) {
    for (Piece& piece : pieces) {
      const Parameter& parameter = *piece.parameter;
      adamw_step({own_values(parameter), parameter.master, piece.gradient, parameter.first_moment,
                  parameter.second_moment},
                 factors);
      piece.gradient.reset();
    }
    return;
  }
  std::size_t next = 0;
  for (const ParameterBlock& block : parameters_.blocks()) {
    const std::span<const Parameter> parameters = std::as_const(parameters_).of(block);
    std::vector<UpdatedElements> own;
    for (; next < pieces.size() && pieces[next].parameter <= &parameters.back(); ++next) {
      const Parameter& parameter = *pieces[next].parameter;
      own.push_back({.begin = parameter.first_moment.storage_offset(),
                     .values = own_values(parameter),
                     .gradient = std::exchange(pieces[next].gradient, {}).view({-1})});
    }
    streamed->update(block, own, factors);
  }
  streamed->finish();
}

// Every member of a team has updated its part of each block; now all get all. One block travels
// while the next is packed.
void AdamW::collect_values() {
  Communicator& team = teams_->team();
  if (team.size() == 1) return;
  struct Arriving {
    const ParameterBlock* block = nullptr;
    at::Tensor all;
    std::unique_ptr<Transfer> transfer;
  };
  const auto unpack = [&](const Arriving& arriving) {
    if (!arriving.block) return;
    arriving.transfer->wait();
    for (Parameter& parameter : parameters_.of(*arriving.block)) {
      if (!parameter.spec.trainable) continue;
      parameter.value.detach().view({-1}).copy_(
          arriving.all.narrow(0, parameters_.place_in_block(parameter), parameter.spec.count()));
    }
  };
  Arriving before;
  for (const ParameterBlock& block : parameters_.blocks()) {
    if (parameters_.trainable_elements(block) == 0) continue;
    if (shards_ && shards_->divided() && shards_->divides(block)) continue;
    const std::int64_t begin = parameters_.range_of(block, teams_->part()).first;
    const std::int64_t size = part_elements(block);
    Arriving next{&block, at::empty({size * team.size()}, block.values.options()), {}};
    at::Tensor own = next.all.narrow(0, team.rank() * size, size);
    for (const Parameter& parameter : parameters_.of(block)) {
      if (parameter.own_count == 0) continue;
      const std::int64_t place = parameters_.place_in_block(parameter) + parameter.own_begin;
      own.narrow(0, place - begin, parameter.own_count).copy_(own_values(parameter));
    }
    next.transfer = collect(team, own, next.all);
    unpack(before);
    before = std::move(next);
  }
  unpack(before);
}

at::Tensor AdamW::whole(const ParameterBlock& block, at::Tensor ParameterBlock::*kind) const {
  const bool has_masters = block.values.scalar_type() != at::kFloat;
  if (parameters_.trainable_elements(block) == 0 ||
      (kind == &ParameterBlock::masters && !has_masters))
    return {};
  if (!teams_ || teams_->team().size() == 1) return block.*kind;
  const at::NoGradGuard no_grad;
  Communicator& team = teams_->team();
  const std::int64_t size = part_elements(block);
  const at::Tensor all = at::empty({size * team.size()}, block.values.options().dtype(at::kFloat));
  const at::Tensor own = all.narrow(0, team.rank() * size, size);
  if ((block.*kind).defined()) own.narrow(0, 0, (block.*kind).numel()).copy_(block.*kind);
  collect(team, own, all)->wait();
  return all.narrow(0, 0, parameters_.trainable_elements(block));
}

std::int64_t AdamW::part_elements(const ParameterBlock& block) const {
  return teams_->chunk_elements(parameters_.trainable_elements(block)) * teams_->replicas().size();
}

double gradient_scale(at::ScalarType dtype, std::int64_t mean_tokens) {
  ANTISD_CHECK_LE(1, mean_tokens);
  return dtype == at::kHalf ? std::exp2(std::floor(std::log2(static_cast<double>(mean_tokens))))
                            : 1;
}

void AdamW::restore(std::int64_t steps) {
  const at::NoGradGuard no_grad;
  steps_ = steps;
  drop_gradients();
  for (Parameter& parameter : parameters_) {
    if (parameter.master.defined()) own_values(parameter).copy_(parameter.master.view({-1}));
  }
  if (teams_) collect_values();
}

}  // namespace antisd::inline optim
