// Where masters and moments lie: on the model's device, or in the host's memory, from where the
// optimizer streams them (optim/streamed_update.h).
//
//   const std::optional<Offload> set = offload_of_name(config.optim.offload);  // nothing: auto
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace antisd::inline model {

// What is on the host; each form includes those before it. Masters exist beside 16-bit weights.
enum class Offload { kNone, kMoments, kAll };
inline constexpr std::array kOffloads = {Offload::kNone, Offload::kMoments, Offload::kAll};

constexpr const char* offload_name(Offload offload) {  // as optim.offload has it
  return std::array{"none", "moments", "all"}[static_cast<std::size_t>(offload)];
}

inline std::optional<Offload> offload_of_name(std::string_view name) {
  for (const Offload offload : kOffloads)
    if (name == offload_name(offload)) return offload;
  return std::nullopt;
}

}  // namespace antisd::inline model
