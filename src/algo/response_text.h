// The text of sampled responses.
#pragma once

#include <span>

#include "algo/response.h"
#include "text/tokenizer/tokenizer.h"

namespace antisd::inline algo {

// Fills Response::text, without special tokens; ids that the tokenizer does not know (padding of
// the vocabulary) have no text.
void add_texts(std::span<Response> responses, const Tokenizer& tokenizer);

}  // namespace antisd::inline algo
