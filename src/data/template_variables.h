// What transformers' apply_chat_template defines for a template besides the messages: the special
// tokens by name, absent tools and documents as none, and a configuration's own variables.
#pragma once

#include "core/option_set.h"
#include "io/json.h"
#include "text/tokenizer.h"

namespace antisd {

Json template_variables(const Tokenizer& tokenizer, const ScalarMap& chat_options);

}  // namespace antisd
