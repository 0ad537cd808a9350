#include "data/prompt_stream.h"

#include <limits>
#include <numeric>

#include "core/check.h"
#include "core/error.h"
#include "core/rng.h"

namespace antisd::inline data {
namespace {

constexpr std::uint64_t kMaxWord = std::numeric_limits<std::uint32_t>::max();

// An integer of the state; state() writes nothing else.
std::uint64_t read_number(const Json& state, const char* name) {
  const auto found = state.find(name);
  if (found == state.end() || !found->is_number_integer() ||
      (!found->is_number_unsigned() && found->get<std::int64_t>() < 0)) {
    throw InputError(fmt::format("the saved data cursor has no integer '{}'", name),
                     {.where = "data cursor", .remedy = "resume from another checkpoint"});
  }
  return found->get<std::uint64_t>();
}

[[noreturn]] void throw_changed(const std::string& what, const std::string& remedy) {
  throw InputError("the run cannot continue where it stopped: " + what,
                   {.where = "data cursor", .remedy = remedy});
}

}  // namespace

PromptStream::PromptStream(std::size_t size, std::string fingerprint, PromptStreamOptions options)
    : fingerprint_(std::move(fingerprint)), options_(options) {
  if (size == 0) {
    throw InputError("the data set is empty", {.where = "data.train", .remedy = "give it rows"});
  }
  ANTISD_CHECK_LE(size, kMaxWord);
  order_.resize(size);
  start_epoch(0);
}

void PromptStream::start_epoch(std::uint64_t epoch) {
  ANTISD_CHECK_LE(epoch, kMaxWord);
  epoch_ = epoch;
  position_ = 0;
  std::iota(order_.begin(), order_.end(), 0u);
  if (!options_.shuffle) return;
  // Fisher-Yates; each swap draws from its own place.
  const CounterRng rng(options_.seed, RandomStream::kShuffle);
  for (std::size_t i = order_.size() - 1; i > 0; --i) {
    const std::uint64_t other = rng.below(i + 1, {.step = static_cast<std::uint32_t>(epoch),
                                                  .prompt = static_cast<std::uint32_t>(i)});
    std::swap(order_[i], order_[other]);
  }
}

std::vector<std::size_t> PromptStream::next(std::size_t count) {
  std::vector<std::size_t> indices;
  indices.reserve(count);
  while (indices.size() < count) {
    indices.push_back(order_[position_++]);
    if (position_ == order_.size()) start_epoch(epoch_ + 1);
  }
  return indices;
}

Json PromptStream::state() const {
  return {{"seed", options_.seed}, {"shuffle", options_.shuffle},
          {"size", order_.size()}, {"fingerprint", fingerprint_},
          {"epoch", epoch_},       {"position", position_}};
}

void PromptStream::restore(const Json& state) {
  if (!state.is_object()) {
    throw InputError("the saved data cursor is not an object",
                     {.where = "data cursor", .remedy = "resume from another checkpoint"});
  }
  const std::uint64_t size = read_number(state, "size");
  if (size != order_.size()) {
    throw_changed(fmt::format("the data set had {} problems, now it has {}", size, order_.size()),
                  "give the same files, data.map and filters as before");
  }
  const auto fingerprint = state.find("fingerprint");
  if (fingerprint == state.end() || *fingerprint != fingerprint_) {
    throw_changed("the data set has as many problems as before but other content or another order",
                  "give the same files in the same order as before");
  }
  const std::uint64_t seed = read_number(state, "seed");
  if (seed != options_.seed) {
    throw_changed(fmt::format("the seed was {}, now it is {}", seed, options_.seed),
                  fmt::format("set train.seed = {}", seed));
  }
  const auto shuffle = state.find("shuffle");
  if (shuffle == state.end() || *shuffle != options_.shuffle) {
    throw_changed(
        fmt::format("data.shuffle was {}, now it is {}", !options_.shuffle, options_.shuffle),
        fmt::format("set data.shuffle = {}", !options_.shuffle));
  }
  const std::uint64_t epoch = read_number(state, "epoch");
  const std::uint64_t position = read_number(state, "position");
  if (position >= order_.size() || epoch > kMaxWord) {
    throw InputError(fmt::format("the saved data cursor stands at item {} of {} in epoch {}",
                                 position, order_.size(), epoch),
                     {.where = "data cursor", .remedy = "resume from another checkpoint"});
  }
  start_epoch(epoch);
  position_ = position;
}

}  // namespace antisd::inline data
