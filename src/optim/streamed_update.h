// One step of AdamW over masters or moments that lie on the host. Pieces of a block come up into
// buffers on the device, the kernel of ops/adamw.h updates them there, and they go down again.
//
//   StreamedUpdate streamed({.offload = Offload::kMoments, .device = model.device(),
//                            .elements = kStreamedElements});
//   for (const ParameterBlock& block : parameters.blocks())
//     streamed.update(block, elements, factors);
//   streamed.finish();  // the host's memory is up to date
//
// While one piece is updated, the next comes up and the one before goes down, on two streams beside
// the current one. Pieces end between blocks of the update (kUpdateBlock), so the result is bit for
// bit that of a state on the device. On a CPU the copies are made too, one after the other.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include "model/offload.h"
#include "model/parameter_store.h"

namespace antisd::inline optim {

// Elements of a piece: large enough that a copy's start costs nothing beside it.
inline constexpr std::int64_t kStreamedElements = 1 << 25;
// One comes up, one is updated, one goes down.
inline constexpr int kStreamBuffers = 3;

struct StreamOptions {
  Offload offload = Offload::kAll;
  at::Device device = at::kCPU;
  std::int64_t elements = kStreamedElements;  // of a piece; a multiple of kUpdateBlock
};

// Elements of one parameter that are updated.
struct UpdatedElements {
  std::int64_t begin = 0;       // their place in the block's masters and moments
  at::Tensor values, gradient;  // [elements] each, on the device
};

class StreamedUpdate {
 public:
  // Allocates the buffers.
  explicit StreamedUpdate(const StreamOptions& options);

  // Updates the values, masters and moments of these elements.
  void update(const ParameterBlock& block, std::span<const UpdatedElements> all,
              const AdamWFactors& factors);
  // Waits until all is on the host again.
  void finish();

 private:
  struct Buffer {
    explicit Buffer(const StreamOptions& options);
    at::Tensor masters, first, second;  // [elements of a piece]
    c10::Event arrived, updated, left;  // on a GPU
  };
  template <typename Work>
  void run(const std::optional<c10::Stream>& stream, const c10::Event& after, c10::Event& done,
           const Work& work);

  StreamOptions options_;
  std::optional<c10::Stream> current_, up_, down_;  // on a GPU
  std::vector<Buffer> buffers_;
  std::size_t next_ = 0;  // piece
};

}  // namespace antisd::inline optim
