// A chat as a training document: the ids of the rendered conversation, and which of them are the
// assistant's.
//
//   const ChatEncoder chats(tokenizer, ChatTemplate::load(path), config.data.chat_options);
//   const TrainingDocument document = chats.encode(row["messages"]);
//
// The assistant's tokens are found by rendering prefixes of the conversation: a turn starts where
// the template's generation prompt ends, and ends after its last special token (the end of the
// turn, which a model must learn), or with the turn's text if it has none.
#pragma once

#include <vector>

#include "data/template_variables.h"
#include "text/chat_template.h"

namespace antisd::inline data {

struct TrainingDocument {
  std::vector<TokenId> ids;
  std::vector<bool> counts;  // whether token i is in the loss; the first never is
  // For a built-in task: the text before the response, and the kind of problem ("countdown-3").
  std::string prompt, bench;

  std::size_t tokens_that_count() const;
  std::size_t prompt_tokens() const;  // those before the first one in the loss
};

class ChatEncoder {
 public:
  ChatEncoder(Tokenizer tokenizer, ChatTemplate chat, const ScalarMap& chat_options);

  // Each turn is encoded separately, as it is sampled after its prompt. InputError for messages
  // that are not a chat, a chat without an assistant's turn, or a template that changes a turn when
  // others follow.
  TrainingDocument encode(const Json& messages) const;

 private:
  std::string render(const Json& messages, std::size_t count, bool generation_prompt) const;
  void append(std::string_view text, bool assistant, TrainingDocument& document) const;

  Tokenizer tokenizer_;
  ChatTemplate chat_;
  Json variables_;
};

}  // namespace antisd::inline data
