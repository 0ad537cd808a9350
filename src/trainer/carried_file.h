// Carried groups (trainer/open_groups.h) in a checkpoint: which they are in state.json, the tokens
// in carried.safetensors, where Python finds them too.
//
//   const Json saved = to_json(state.carried);
//   write_carried(folder, state.carried);
//   state.carried = read_carried(folder, saved);   // prompts without ids: see Trainer
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "io/json.h"
#include "trainer/open_groups.h"

namespace antisd::inline trainer {

// A list of {problem, step, index, responses: [{finish, policies: [[step, tokens], ...]}, ...]}.
Json to_json(std::span<const OpenGroup> carried);

// ids (I32), sampling_logp and raw_logp (F32) of all responses, one after the other. No file if
// nothing is carried.
void write_carried(const std::filesystem::path& folder, std::span<const OpenGroup> carried);

// Of the prompts only number, step and index. InputError where the two do not fit together.
std::vector<OpenGroup> read_carried(const std::filesystem::path& folder, const Json& saved);

}  // namespace antisd::inline trainer
