// Readable tokens: the text that each adds, bytes of an incomplete character as escapes, special
// tokens by name.
//
//   token_texts(tokenizer, ids);  // {"Wait", ",", " 4", "\\xE4\\xB8", "\\xAD", "<|im_end|>"}
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace antisd::inline report {

// One text per id, in its position after `before`, the last token of a prompt (-1: none).
// Concatenated they are the response, unless a character spans several tokens. An id that the
// tokenizer does not know is "<id 151700>".
std::vector<std::string> token_texts(const Tokenizer& tokenizer, std::span<const TokenId> ids,
                                     TokenId before = -1);

// A token by itself, with its leading space if the vocabulary has it: " Wait" and "Wait" are two
// tokens of a byte-level vocabulary.
std::string token_name(const Tokenizer& tokenizer, TokenId id);

// Bytes that are not UTF-8 as \xE4, everything else unchanged.
std::string escape_ill_formed(std::string_view bytes);

// For a terminal: also escapes control characters (
// , \t, \x1B), so that no text can move the cursor or change a colour.
std::string escape_controls(std::string_view text);

}  // namespace antisd::inline report
