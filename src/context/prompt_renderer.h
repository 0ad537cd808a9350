// Problems -> chat messages -> the ids a model is given.
//
//   const PromptRenderer renderer(Tokenizer::load(path), ChatTemplate::load(path), config.data);
//   const PromptBatch prompts = renderer.batch(step, problems, stream.next(32));
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "data/problem.h"
#include "data/prompts.h"
#include "io/json.h"
#include "text/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace antisd::inline context {

class PromptRenderer {
 public:
  // Without a chat template (base models, word-level ones), messages are joined by newlines.
  // InputError for an unknown data.template, or for chat_options that the template never reads.
  PromptRenderer(Tokenizer tokenizer, std::optional<ChatTemplate> chat, const DataConfig& config);

  // The problem's chat list as it is, else one user message: the problem in the student's template.
  std::vector<ChatMessage> student_messages(const Problem& problem) const;

  // The rendered text, ending with the generation prompt.
  std::string text(std::span<const ChatMessage> messages) const;
  std::vector<TokenId> encode(std::span<const ChatMessage> messages) const;
  std::vector<TokenId> encode(const Problem& problem) const {
    return encode(student_messages(problem));
  }

  // The step's prompts. Borrows the problems: `problems[i]` must outlive the batch.
  template <typename Problems>
  PromptBatch batch(std::uint32_t step, const Problems& problems,
                    std::span<const std::size_t> indices) const {
    PromptBatch prompts;
    for (const std::size_t number : indices) {
      const auto index = static_cast<std::uint32_t>(prompts.prompts.size());
      prompts.prompts.push_back(prompt(problems[number]));
      prompts.prompts.back().number = number;
      prompts.prompts.back().step = step;
      prompts.prompts.back().index = index;
    }
    return prompts;
  }

  // Without number, step and index.
  Prompt prompt(const Problem& problem) const;

  const Tokenizer& tokenizer() const { return tokenizer_; }

 private:
  Tokenizer tokenizer_;
  std::optional<ChatTemplate> chat_;
  std::string student_template_;
  Json variables_;  // for every rendering
};

}  // namespace antisd::inline context
