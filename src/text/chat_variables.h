// The variables of a row that a chat template can read.
#pragma once

#include "io/json.h"

namespace antisd::inline text {

// The variables that transformers' apply_chat_template defines for a row with `messages`: `tools`
// and `documents` are none unless given, special tokens have their names, and the row's own keys
// override them. InputError if the messages are no list.
Json chat_variables(const Json& row, const Json& special_tokens);

}  // namespace antisd::inline text
