// The word-level tokenizer of the built-in task, as the files of a Hugging Face directory:
// transformers' AutoTokenizer loads them to the same ids. A number from 0 to 400 is one token.
#pragma once

#include <map>
#include <string>

namespace antisd::inline data {

// tokenizer.json, tokenizer_config.json and chat_template.jinja, by name. The template says what
// the messages say, one blank between them and [EOS] behind what the assistant said.
std::map<std::string, std::string> countdown_tokenizer_files();

}  // namespace antisd::inline data
