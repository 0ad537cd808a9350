// Counter-based random numbers: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011). A number is a pure function of its place, so it does not depend on the order
// of work, the batch, threads or a resume:
//
//   const CounterRng rng(seed, RandomStream::kSampling);
//   const double u = rng.uniform({.step = 3, .prompt = 17, .sample = 2, .position = 141});
#pragma once

#include <array>
#include <cstdint>

namespace antisd::inline core {

using PhiloxBlock = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

PhiloxBlock philox_4x32_10(PhiloxBlock counter, PhiloxKey key);

// Purposes that must not share random numbers. The values decide what a seed produces: append,
// never renumber.
enum class RandomStream : std::uint32_t {
  kSampling = 0,    // token noise of the rollout
  kShuffle = 1,     // order of the prompts in an epoch
  kPeer = 2,        // which correct peer a teacher is shown
  kInitialise = 3,  // random weights
  kTask = 4,        // problems and documents of built-in tasks
  kBootstrap = 5,   // resampling in evaluation
};

// What a random number is for. Unused fields stay 0.
struct RandomPlace {
  std::uint32_t step = 0;      // training step, or epoch
  std::uint32_t prompt = 0;    // index of the prompt in the step, or of the item
  std::uint32_t sample = 0;    // index of the response in its group
  std::uint32_t position = 0;  // token position
};

class CounterRng {
 public:
  CounterRng(std::uint64_t seed, RandomStream stream);

  PhiloxBlock block(const RandomPlace& place) const;   // 128 random bits
  std::uint64_t bits(const RandomPlace& place) const;  // 64 random bits
  double uniform(const RandomPlace& place) const;      // [0, 1), 53 bits
  // Uniform in [0, bound); the bias is below bound / 2^64. bound > 0.
  std::uint64_t below(std::uint64_t bound, const RandomPlace& place) const;

  // What a device kernel needs to draw the same numbers.
  PhiloxKey key() const { return key_; }

 private:
  PhiloxKey key_;
};

// Counter words in the order (position, sample, prompt, step); kernels use the same.
inline PhiloxBlock counter_of(const RandomPlace& place) {
  return {place.position, place.sample, place.prompt, place.step};
}

}  // namespace antisd::inline core
