// What a chat template may read of a row.
#pragma once

#include "io/json.h"

namespace antisd::inline cli {

// The variables of transformers' apply_chat_template for a row with `messages`: `tools` and
// `documents` are none unless given, the special tokens go by their names, and the row's own keys
// come last.
Json chat_variables(const Json& row, const Json& special_tokens);

}  // namespace antisd::inline cli
