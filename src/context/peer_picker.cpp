#include "context/peer_picker.h"

namespace antisd::inline context {
namespace {

std::vector<std::size_t> others(const std::vector<bool>& may_be_shown,
                                std::optional<std::size_t> except) {
  std::vector<std::size_t> peers;
  for (std::size_t j = 0; j < may_be_shown.size(); ++j) {
    if (may_be_shown[j] && j != except) peers.push_back(j);
  }
  return peers;
}

}  // namespace

std::optional<std::size_t> PeerPicker::pick(std::uint32_t step, std::uint32_t prompt,
                                            const std::vector<bool>& may_be_shown,
                                            std::size_t i) const {
  const auto draw = [&](const std::vector<std::size_t>& peers,
                        std::size_t sample) -> std::optional<std::size_t> {
    if (peers.empty()) return std::nullopt;
    return peers[rng_.below(
        peers.size(),
        {.step = step, .prompt = prompt, .sample = static_cast<std::uint32_t>(sample)})];
  };
  if (mode_ == PeerMode::kGroup) {
    const std::optional<std::size_t> first = draw(others(may_be_shown, std::nullopt), 0);
    if (first != i) return first;
    return draw(others(may_be_shown, i), 1);
  }
  return draw(others(may_be_shown, i), i);
}

}  // namespace antisd::inline context
