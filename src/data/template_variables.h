// Variables that transformers' apply_chat_template defines besides the messages: the special tokens
// by name, missing tools and documents as none, and the configuration's own.
#pragma once

#include "core/option_set.h"
#include "io/json.h"
#include "text/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace antisd::inline data {

Json template_variables(const Tokenizer& tokenizer, const ScalarMap& chat_options);

// InputError for a variable of data.chat_options that the template never reads: it would have no
// effect, and is probably mistyped.
void check_chat_options(const ChatTemplate& chat, const ScalarMap& chat_options);

}  // namespace antisd::inline data
