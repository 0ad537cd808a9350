// The word-level tokenizer of the built-in task, as files of a Hugging Face directory:
// transformers' AutoTokenizer gives the same ids. A number from 0 to 400 is one token.
#pragma once

#include <map>
#include <string>

namespace antisd::inline data {

// tokenizer.json, tokenizer_config.json and chat_template.jinja, by name. The template joins
// messages by a space and appends [EOS] to the assistant's.
std::map<std::string, std::string> countdown_tokenizer_files();

}  // namespace antisd::inline data
