// Reading a checkpoint's state.json.
#pragma once

#include "core/error.h"
#include "io/json.h"

namespace antisd::inline trainer {

// Turns the JSON library's exceptions for missing or invalid values into an InputError.
template <typename Read>
auto read_saved(Read&& read) {
  try {
    return read();
  } catch (const nlohmann::json::exception& error) {
    throw InputError(fmt::format("the saved state is not one of ours ({})", error.what()),
                     {.where = "state.json", .remedy = "resume from another checkpoint"});
  }
}

}  // namespace antisd::inline trainer
