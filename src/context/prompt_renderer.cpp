#include "context/prompt_renderer.h"

#include <algorithm>

#include "context/templates.h"
#include "data/template_variables.h"

namespace antisd::inline context {

PromptRenderer::PromptRenderer(Tokenizer tokenizer, std::optional<ChatTemplate> chat,
                               const DataConfig& config)
    : tokenizer_(std::move(tokenizer)),
      chat_(std::move(chat)),
      student_template_(student_template(config.template_name)),
      variables_(template_variables(tokenizer_, config.chat_options)) {
  if (chat_) check_chat_options(*chat_, config.chat_options);
}

std::vector<ChatMessage> PromptRenderer::student_messages(const Problem& problem) const {
  if (!problem.messages.empty()) return problem.messages;
  return {{"user", fill_template(student_template_, {{"problem", problem.problem}})}};
}

std::string PromptRenderer::text(std::span<const ChatMessage> messages) const {
  if (!chat_) {
    std::string joined;
    for (const ChatMessage& message : messages)
      joined += (joined.empty() ? "" : "\n") + message.content;
    return joined;
  }
  Json list = Json::array();
  for (const ChatMessage& message : messages)
    list.push_back({{"role", message.role}, {"content", message.content}});
  Json variables = variables_;
  variables["messages"] = with_reasoning_names(list);
  return chat_->render(variables);
}

std::vector<TokenId> PromptRenderer::encode(std::span<const ChatMessage> messages) const {
  if (chat_) return tokenizer_.encode(text(messages));
  // Plain text gets the tokens that the tokenizer adds at the start, but none at the end: the
  // response follows.
  const std::string plain = text(messages);
  const std::vector<TokenId> bare = tokenizer_.encode(plain);
  std::vector<TokenId> ids = tokenizer_.encode(plain, /*add_special_tokens=*/true);
  const auto at = std::search(ids.begin(), ids.end(), bare.begin(), bare.end());
  if (at != ids.end()) ids.erase(at + std::ssize(bare), ids.end());
  return ids;
}

Prompt PromptRenderer::prompt(const Problem& problem) const {
  return {.id = problem.id, .problem = &problem, .ids = encode(problem)};
}

}  // namespace antisd::inline context
