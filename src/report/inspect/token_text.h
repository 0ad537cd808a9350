// Tokens as a person reads them: what each adds to the text, bytes of an unfinished character as
// escapes, special tokens by name.
//
//   token_texts(tokenizer, ids);  // {"Wait", ",", " 4", "\\xE4\\xB8", "\\xAD", "<|im_end|>"}
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace antisd::inline report {

// One text for each id, in its place behind `before`, the last token of a prompt (-1: none). Joined
// they are the response where no character is spread over tokens. An id that the tokenizer does not
// know is "<id 151700>".
std::vector<std::string> token_texts(const Tokenizer& tokenizer, std::span<const TokenId> ids,
                                     TokenId before = -1);

// A token on its own, with the blank that it begins with where the vocabulary has it: " Wait" and
// "Wait" are two tokens of a byte-level vocabulary.
std::string token_name(const Tokenizer& tokenizer, TokenId id);

// Bytes that are not UTF-8 as \xE4, everything else as it is.
std::string escape_ill_formed(std::string_view bytes);

// For a terminal: control characters too as escapes (\n, \t, \x1B), so that no text can move the
// cursor or change a colour.
std::string escape_controls(std::string_view text);

}  // namespace antisd::inline report
