#include "data/chat_document.h"

#include <algorithm>

#include "core/error.h"

namespace antisd::inline data {
namespace {

void check_messages(const Json& messages) {
  const auto is_message = [](const Json& message) {
    return message.is_object() && message.contains("role") && message["role"].is_string() &&
           message.contains("content");
  };
  if (!messages.is_array() || messages.empty() ||
      !std::all_of(messages.begin(), messages.end(), is_message)) {
    throw InputError("'messages' is not a list of {\"role\", \"content\"}",
                     {.remedy = R"(e.g. [{"role": "user", "content": "Hi"}, ...])"});
  }
}

}  // namespace

std::size_t TrainingDocument::tokens_that_count() const {
  return std::size_t(std::count(counts.begin(), counts.end(), true));
}

std::size_t TrainingDocument::prompt_tokens() const {
  return std::size_t(std::find(counts.begin(), counts.end(), true) - counts.begin());
}

ChatEncoder::ChatEncoder(Tokenizer tokenizer, ChatTemplate chat, const ScalarMap& chat_options)
    : tokenizer_(std::move(tokenizer)),
      chat_(std::move(chat)),
      variables_(template_variables(tokenizer_, chat_options)) {
  check_chat_options(chat_, chat_options);
}

std::string ChatEncoder::render(const Json& messages, std::size_t count,
                                bool generation_prompt) const {
  Json variables = variables_;
  variables["add_generation_prompt"] = generation_prompt;
  variables["messages"] = with_reasoning_names(
      Json(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(count)));
  return chat_.render(variables);
}

void ChatEncoder::append(std::string_view text, bool assistant, TrainingDocument& document) const {
  const std::vector<TokenId> ids = tokenizer_.encode(text);
  std::size_t end = ids.size();
  // Tokens that the template adds after the end of the turn are not the assistant's.
  while (end > 0 && !tokenizer_.is_special(ids[end - 1]))
    --end;
  if (end == 0) end = ids.size();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    document.ids.push_back(ids[i]);
    document.counts.push_back(assistant && i < end && document.ids.size() > 1);
  }
}

TrainingDocument ChatEncoder::encode(const Json& messages) const {
  check_messages(messages);
  const std::string whole = render(messages, messages.size(), false);
  TrainingDocument document;
  std::size_t done = 0;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i]["role"] != "assistant") continue;
    const std::string before = render(messages, i, true), with = render(messages, i + 1, false);
    if (before.size() < done || !with.starts_with(before) || !whole.starts_with(with)) {
      throw InputError(
          fmt::format("the chat template writes turn {} differently once others follow", i + 1),
          {.remedy = "give every turn to learn as the last one of its own row"});
    }
    append(std::string_view(whole).substr(done, before.size() - done), false, document);
    append(std::string_view(whole).substr(before.size(), with.size() - before.size()), true,
           document);
    done = with.size();
  }
  if (document.tokens_that_count() == 0) {
    throw InputError("the chat has no assistant turn: there is nothing to learn",
                     {.remedy = "end it with {\"role\": \"assistant\", ...}"});
  }
  return document;  // the rest, after the last turn that counts, has no loss
}

}  // namespace antisd::inline data
