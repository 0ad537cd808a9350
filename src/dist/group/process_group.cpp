#define USE_C10D_GLOO
#include "dist/group/process_group.h"

#include <algorithm>
#include <cstring>
#include <set>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "core/check.h"
#include "dist/group/ties.h"
#ifdef ANTISD_CUDA
#include "dist/group/nccl.h"
#endif

namespace antisd::inline dist {
namespace {

using BackendPointer = c10::intrusive_ptr<c10d::Backend>;
using WorkPointer = c10::intrusive_ptr<c10d::Work>;

constexpr std::chrono::minutes kToConnect(1);       // once all ranks are there
constexpr std::chrono::hours kNeverMind(24 * 100);  // Gloo's own timeout: Liveness decides
// A message up to this length travels with its length.
constexpr std::int64_t kShortMessage = 1016;
// Messages are padded to the longest up to this sum; beyond, each travels by itself.
constexpr std::int64_t kPaddedBytes = 16 << 20;

at::Tensor host_view(void* memory, std::int64_t bytes) {
  return at::from_blob(memory, {bytes}, at::kByte);
}

at::Tensor view(const void* memory, std::int64_t bytes, MemoryKind kind) {
  void* const bare = const_cast<void*>(memory);  // a tensor has no constant memory
  if (kind == MemoryKind::kHost) return host_view(bare, bytes);
  return at::from_blob(bare, {bytes}, at::TensorOptions(at::kByte).device(at::kCUDA));
}

class Nothing : public Transfer {
 public:
  void wait() override {}
};

class GroupRanks : public Communicator {
 public:
  GroupRanks(std::shared_ptr<Ties> ties, std::shared_ptr<WaitLog> waits, std::string name, int rank,
             int size)
      : ties_(std::move(ties)),
        waits_(std::move(waits)),
        name_(std::move(name)),
        rank_(rank),
        size_(size) {
    gloo_ = ties_->start([&]() -> BackendPointer {
      const auto options = c10d::ProcessGroupGloo::Options::create(kToConnect);
      options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(ties_->address()));
      return c10::make_intrusive<c10d::ProcessGroupGloo>(ties_->store().part(name_ + "/gloo"),
                                                         rank_, size_, options);
    });
    gloo_->setTimeout(kNeverMind);
  }

  // Connections in an unknown state are left behind: their destructors would wait for ever.
  ~GroupRanks() override {
    if (ties_->broken()) {
      gloo_.release();
      nccl_.release();
    } else if (nccl_) {
      nccl_->shutdown();
    }
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void enter(const std::string& phase) override { ties_->liveness().enter(phase); }

  std::vector<std::string> gather(const std::string& own) override;

  std::unique_ptr<Transfer> exchange_parts(const Parts& parts) override {
    return move(parts, /*own_parts=*/size_);
  }
  std::unique_ptr<Transfer> collect_parts(const Parts& parts) override {
    return move(parts, /*own_parts=*/1);
  }

  std::unique_ptr<Communicator> among(const std::vector<int>& ranks) override {
    const auto own = std::ranges::find(ranks, rank_);
    ANTISD_CHECK(own != ranks.end() && std::ranges::is_sorted(ranks));
    gather("");  // Gloo waits for its members for a limited time: they are all here first
    return std::make_unique<GroupRanks>(
        ties_, waits_, fmt::format("{}/{}/{}", name_, parts_made_++, fmt::join(ranks, "-")),
        static_cast<int>(own - ranks.begin()), static_cast<int>(ranks.size()));
  }
  std::unique_ptr<Communicator> beside() override {
    gather("");
    return std::make_unique<GroupRanks>(ties_, std::make_shared<WaitLog>(),
                                        fmt::format("{}/beside-{}", name_, parts_made_++), rank_,
                                        size_);
  }
  std::vector<double> take_waits() override { return waits_->take(); }

 private:
  std::unique_ptr<Transfer> move(const Parts& parts, int own_parts);
  BackendPointer gpu_backend();
  std::vector<std::string> gather_long(const std::string& own,
                                       const std::vector<std::int64_t>& lengths);

  std::unique_ptr<Transfer> moving(
      WorkPointer work, std::function<void()> arrive = [] {}) {
    return std::make_unique<Moving>(ties_, waits_, std::move(work), std::move(arrive));
  }
  // A part of `own` goes to each rank, and one from each is received.
  WorkPointer exchange(c10d::Backend& backend, at::Tensor received, at::Tensor own) {
    std::vector<std::int64_t> equal;
    return ties_->start([&] { return backend.alltoall_base(received, own, equal, equal); });
  }
  // As `own` of exchange(): for each rank a copy of one part that all get. c10d's all-gather over
  // Gloo receives into memory of its own, and if a rank dies frees it while Gloo still writes. An
  // exchange reads and writes our memory alone, which the work keeps until Gloo has left it.
  at::Tensor for_all(const at::Tensor& part, const at::TensorOptions& options) const {
    return at::empty({size_, part.numel()}, options).copy_(part).view({-1});
  }
  void collect(const at::Tensor& all, const at::Tensor& own) {
    ties_->wait(*exchange(*gloo_, all, for_all(own, at::kByte)), *waits_);
  }

  std::shared_ptr<Ties> ties_;
  std::shared_ptr<WaitLog> waits_;
  const std::string name_;
  const int rank_, size_;
  BackendPointer gloo_, nccl_;
  bool gpus_known_ = false;  // and with them whether nccl_ is used
  int parts_made_ = 0;
};

// A block of fixed length for each rank: the length of its message, and the message if it is short.
std::vector<std::string> GroupRanks::gather(const std::string& own) {
  constexpr std::int64_t kBlock = sizeof(std::int64_t) + kShortMessage;
  std::vector<char> block(kBlock), blocks(static_cast<std::size_t>(size_ * kBlock));
  const auto own_length = std::ssize(own);
  std::memcpy(block.data(), &own_length, sizeof(own_length));
  std::memcpy(block.data() + sizeof(own_length), own.data(),
              static_cast<std::size_t>(std::min<std::int64_t>(own_length, kShortMessage)));
  collect(host_view(blocks.data(), size_ * kBlock), host_view(block.data(), kBlock));

  std::vector<std::int64_t> lengths(static_cast<std::size_t>(size_));
  std::vector<std::string> all;
  for (std::size_t r = 0; r < lengths.size(); ++r) {
    const char* const from = blocks.data() + r * kBlock;
    std::memcpy(&lengths[r], from, sizeof(lengths[r]));
    if (lengths[r] <= kShortMessage)
      all.emplace_back(from + sizeof(lengths[r]), static_cast<std::size_t>(lengths[r]));
  }
  if (std::ssize(all) == size_) return all;
  return gather_long(own, lengths);
}

std::vector<std::string> GroupRanks::gather_long(const std::string& own,
                                                 const std::vector<std::int64_t>& lengths) {
  std::vector<std::string> all;
  const std::int64_t longest = *std::ranges::max_element(lengths);
  if (longest * size_ <= kPaddedBytes) {
    std::string padded = own, joined(static_cast<std::size_t>(longest * size_), '\0');
    padded.resize(static_cast<std::size_t>(longest));
    collect(host_view(joined.data(), longest * size_), host_view(padded.data(), longest));
    for (std::size_t r = 0; r < lengths.size(); ++r)
      all.push_back(joined.substr(r * static_cast<std::size_t>(longest),
                                  static_cast<std::size_t>(lengths[r])));
    return all;
  }
  for (const std::int64_t length : lengths)
    all.emplace_back(static_cast<std::size_t>(length), '\0');
  all[static_cast<std::size_t>(rank_)] = own;
  std::vector<std::unique_ptr<Transfer>> sent;
  for (int r = 0; r < size_; ++r) {
    std::string& text = all[static_cast<std::size_t>(r)];
    if (text.empty()) continue;
    std::vector<at::Tensor> tensor = {host_view(text.data(), std::ssize(text))};
    c10d::BroadcastOptions from;
    from.rootRank = r;
    WorkPointer work = ties_->start([&] { return gloo_->broadcast(tensor, from); });
    sent.push_back(moving(std::move(work)));
  }
  for (const auto& transfer : sent)
    transfer->wait();
  return all;
}

std::unique_ptr<Transfer> GroupRanks::move(const Parts& parts, int own_parts) {
  if (parts.part_bytes == 0) return std::make_unique<Nothing>();
  const bool collected = own_parts == 1;
  const at::Tensor own = view(parts.own, own_parts * parts.part_bytes, parts.kind);
  at::Tensor received = view(parts.received, size_ * parts.part_bytes, parts.kind);
  if (parts.kind == MemoryKind::kHost)
    return moving(exchange(*gloo_, received, collected ? for_all(own, at::kByte) : own));
  if (const BackendPointer nccl = gpu_backend()) {
    if (!collected) return moving(exchange(*nccl, received, own));
    at::Tensor part = own;
    return moving(ties_->start([&] { return nccl->_allgather_base(received, part); }));
  }
  // Several ranks on one GPU, for checks: through the host's pinned memory.
  const auto pinned = at::TensorOptions(at::kByte).pinned_memory(true);
  const at::Tensor own_copy =
      collected ? for_all(own, pinned) : at::empty(own.sizes(), pinned).copy_(own);
  const at::Tensor received_copy = at::empty(received.sizes(), pinned);
  return moving(exchange(*gloo_, received_copy, own_copy),
                [received, received_copy]() mutable { received.copy_(received_copy); });
}

// Null: GPU memory goes through the host. Decided with the first GPU memory that moves, since a
// rank chooses its device after it has joined.
BackendPointer GroupRanks::gpu_backend() {
  if (gpus_known_) return nccl_;
  gpus_known_ = true;
#ifdef ANTISD_CUDA
  const GpuBackend wanted = ties_->options().backend;
  if (wanted == GpuBackend::kGloo) return nccl_;
  const std::vector<std::string> gpus = gather(own_gpu());
  if (std::set(gpus.begin(), gpus.end()).size() == gpus.size()) {
    nccl_ =
        ties_->start([&] { return join_nccl(ties_->store().part(name_ + "/nccl"), rank_, size_); });
  } else if (wanted == GpuBackend::kNccl) {
    throw InputError("NCCL needs a GPU for each rank, but some ranks share one",
                     {.remedy = "start as many ranks as there are GPUs, or let memory go through "
                                "the host with the backend gloo"});
  }
#endif
  return nccl_;
}

class Joined : public ProcessGroup {
 public:
  explicit Joined(const Place& place, const GroupOptions& options)
      : ties_(std::make_shared<Ties>(place, options)),
        ranks_(std::make_unique<GroupRanks>(ties_, std::make_shared<WaitLog>(), "all", place.rank,
                                            place.size)) {}

  ~Joined() override {
    try {
      if (!ties_->broken()) leave();
    } catch (const Error&) {
    }
  }

  int rank() const override { return ranks_->rank(); }
  int size() const override { return ranks_->size(); }
  void enter(const std::string& phase) override { ranks_->enter(phase); }
  std::vector<std::string> gather(const std::string& own) override { return ranks_->gather(own); }
  std::unique_ptr<Transfer> exchange_parts(const Parts& parts) override {
    return ranks_->exchange_parts(parts);
  }
  std::unique_ptr<Transfer> collect_parts(const Parts& parts) override {
    return ranks_->collect_parts(parts);
  }
  std::unique_ptr<Communicator> among(const std::vector<int>& ranks) override {
    return ranks_->among(ranks);
  }
  std::unique_ptr<Communicator> beside() override { return ranks_->beside(); }
  std::vector<double> take_waits() override { return ranks_->take_waits(); }

  void leave() override {
    if (left_) return;
    left_ = true;
    ties_->leave();
  }
  void fail(const std::string& message) noexcept override { ties_->fail(message); }

 private:
  std::shared_ptr<Ties> ties_;
  std::unique_ptr<GroupRanks> ranks_;
  bool left_ = false;
};

}  // namespace

std::unique_ptr<ProcessGroup> join_group(const Place& place, const GroupOptions& options) {
  ANTISD_CHECK(!place.host.empty());
#ifndef ANTISD_CUDA
  if (options.backend == GpuBackend::kNccl)
    throw InputError("NCCL needs a build with CUDA", {.remedy = "use the backend gloo"});
#endif
  return std::make_unique<Joined>(place, options);
}

}  // namespace antisd::inline dist
#undef USE_C10D_GLOO
