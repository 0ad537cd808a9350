// A model's chat template: Jinja as in transformers' apply_chat_template (trim_blocks,
// lstrip_blocks, loop controls, generation blocks, an immutable sandbox, its own tojson).
//
//   const ChatTemplate chat = ChatTemplate::load("Qwen3-8B");
//   chat.render({{"messages", messages}, {"tools", nullptr}, {"add_generation_prompt", true}});
//
// Parsed once, rendered often; several threads may call render() at a time. A template is
// untrusted: steps, memory, output and depth are limited.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "io/json.h"

namespace antisd::inline text {

namespace jinja {
struct Program;
}

struct TemplateLimits {
  std::size_t steps = 5'000'000;  // about a second in the worst case
  std::size_t output_bytes = std::size_t{64} << 20;
  std::size_t memory_bytes = std::size_t{128} << 20;  // of values alive at a time
};

class ChatTemplate {
 public:
  // `name` is the template's name in errors. Throws InputError "name:line: ..." on a syntax error.
  explicit ChatTemplate(std::string source, std::string name = "template",
                        TemplateLimits limits = {});

  // From chat_template.jinja, else tokenizer_config.json's chat_template (the "default" of a list
  // of named ones), else chat_template.json.
  static ChatTemplate load(const std::filesystem::path& model_directory);

  // `variables` is an object: messages, tools, add_generation_prompt, bos_token and whatever else
  // the template reads. Throws InputError if the template raises an exception (raise_exception),
  // for operations on undefined or unsuitable values, and at a limit.
  std::string render(const Json& variables) const;

  const std::string& source() const { return source_; }

  // Every name in the template, sorted, including its own variables and functions: a variable of
  // another name has no effect.
  std::vector<std::string> names() const;

 private:
  std::string source_;
  std::string name_;
  TemplateLimits limits_;
  std::shared_ptr<const jinja::Program> program_;
};

// Messages as transformers passes them to a template: a message's reasoning, given as
// `reasoning_content`, `thinking` or `reasoning`, is set under the first two names, since templates
// read either.
Json with_reasoning_names(const Json& messages);

}  // namespace antisd::inline text
