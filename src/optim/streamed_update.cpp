#include "optim/streamed_update.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "core/check.h"

namespace antisd::inline optim {

StreamedUpdate::Buffer::Buffer(const StreamOptions& options)
    : arrived(options.device.type()), updated(options.device.type()), left(options.device.type()) {
  const auto on_device = at::TensorOptions(at::kFloat).device(options.device);
  if (options.offload == Offload::kAll) masters = at::empty({options.elements}, on_device);
  first = at::empty({options.elements}, on_device);
  second = at::empty({options.elements}, on_device);
}

StreamedUpdate::StreamedUpdate(const StreamOptions& options) : options_(options) {
  ANTISD_CHECK(options.offload != Offload::kNone && options.elements % kUpdateBlock == 0);
  for (int i = 0; i < kStreamBuffers; ++i)
    buffers_.emplace_back(options);
  if (options.device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl streams(options.device.type());
  current_ = streams.getStream(options.device);
  up_ = streams.getStreamFromGlobalPool(options.device);
  down_ = streams.getStreamFromGlobalPool(options.device);
  // Work of the current stream may still use the memory that the buffers got.
  c10::Event before(options.device.type());
  before.record(*current_);
  before.block(*up_);
}

// Work on a stream, after an event and before another. On a CPU it is done at once.
template <typename Work>
void StreamedUpdate::run(const std::optional<c10::Stream>& stream, const c10::Event& after,
                         c10::Event& done, const Work& work) {
  if (!stream) return work();
  const c10::StreamGuard guard(*stream);
  after.block(*stream);  // nothing if it was never recorded
  work();
  done.record(*stream);
}

void StreamedUpdate::update(const ParameterBlock& block, std::span<const UpdatedElements> all,
                            const AdamWFactors& factors) {
  const bool has_masters = block.masters.defined();
  const bool streams_masters = has_masters && options_.offload == Offload::kAll;
  const std::int64_t elements = all.empty() ? 0 : block.first_moments.numel();
  for (std::int64_t begin = 0; begin < elements; begin += options_.elements) {
    const std::int64_t count = std::min(options_.elements, elements - begin);
    Buffer& buffer = buffers_[next_++ % buffers_.size()];
    const auto copy_all = [&](bool down) {
      const auto copy = [&](const at::Tensor& of_block, const at::Tensor& of_buffer) {
        const at::Tensor host = of_block.narrow(0, begin, count);
        const at::Tensor device = of_buffer.narrow(0, 0, count);
        (down ? host : device).copy_(down ? device : host, /*non_blocking=*/true);
      };
      if (streams_masters) copy(block.masters, buffer.masters);
      copy(block.first_moments, buffer.first);
      copy(block.second_moments, buffer.second);
    };
    run(up_, buffer.left, buffer.arrived, [&] { copy_all(/*down=*/false); });
    run(current_, buffer.arrived, buffer.updated, [&] {
      for (const UpdatedElements& own : all) {
        const std::int64_t from = std::max(own.begin, begin);
        const std::int64_t size = std::min(own.begin + own.values.numel(), begin + count) - from;
        if (size <= 0) continue;
        at::Tensor master;
        if (streams_masters)
          master = buffer.masters.narrow(0, from - begin, size);
        else if (has_masters)
          master = block.masters.narrow(0, from, size);
        adamw_step({own.values.narrow(0, from - own.begin, size), master,
                    own.gradient.narrow(0, from - own.begin, size),
                    buffer.first.narrow(0, from - begin, size),
                    buffer.second.narrow(0, from - begin, size)},
                   factors);
      }
    });
    run(down_, buffer.updated, buffer.left, [&] { copy_all(/*down=*/true); });
  }
}

void StreamedUpdate::finish() {
  for (const Buffer& buffer : buffers_)
    buffer.left.synchronize();
}

}  // namespace antisd::inline optim
