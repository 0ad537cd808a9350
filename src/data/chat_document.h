// A chat as a training document: the ids of the rendered conversation, and which of them the
// assistant says.
//
//   const ChatEncoder chats(tokenizer, ChatTemplate::load(path), config.data.chat_options);
//   const TrainingDocument document = chats.encode(row["messages"]);
//
// What an assistant says is found by rendering prefixes of the conversation: its turn begins where
// the template's generation prompt ends, and ends behind its last special token (the end of the
// turn, which a model must learn to say), or with the turn's text where there is none.
#pragma once

#include <vector>

#include "data/template_variables.h"
#include "text/chat_template.h"

namespace antisd::inline data {

struct TrainingDocument {
  std::vector<TokenId> ids;
  std::vector<bool> counts;  // whether token i is to be learnt; the first never is
  // Of a built-in task: the text before the response, and the kind of problem ("countdown-3").
  std::string prompt, bench;

  std::size_t tokens_that_count() const;
  std::size_t prompt_tokens() const;  // those before the first that counts
};

class ChatEncoder {
 public:
  ChatEncoder(Tokenizer tokenizer, ChatTemplate chat, const ScalarMap& chat_options);

  // Each turn is encoded by itself, as sampling after the prompt gives it. InputError for messages
  // that are not a chat, a chat without an assistant's turn, or a template that writes a turn
  // differently once others follow.
  TrainingDocument encode(const Json& messages) const;

 private:
  std::string render(const Json& messages, std::size_t count, bool generation_prompt) const;
  void append(std::string_view text, bool assistant, TrainingDocument& document) const;

  Tokenizer tokenizer_;
  ChatTemplate chat_;
  Json variables_;
};

}  // namespace antisd::inline data
