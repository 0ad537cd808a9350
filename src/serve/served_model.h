// The text side of a model that is served: tokenizer, chat template, the ids that end a response.
// Immutable; many threads may use it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/json.h"
#include "text/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace antisd::inline serve {

class ServedModel {
 public:
  // `files`: the directory with config.json and the tokenizer. A model without a tokenizer answers
  // prompts of ids; one without a template has no chat.
  ServedModel(const std::filesystem::path& files, std::string name);

  const std::string& name() const { return name_; }
  const std::optional<Tokenizer>& tokenizer() const { return tokenizer_; }
  bool has_template() const { return template_.has_value(); }
  // Whether the template reads a variable of this name.
  bool template_reads(const std::string& variable) const;
  const std::vector<std::int32_t>& stop_ids() const { return stop_ids_; }

  // The ids of a text with the special tokens that the tokenizer adds, as `generate` has them.
  std::vector<std::int32_t> encode(const std::string& text) const;
  // `variables`: messages, and tools and others for the template.
  std::vector<std::int32_t> render(const Json& variables) const;

 private:
  std::string name_;
  std::optional<Tokenizer> tokenizer_;
  std::optional<ChatTemplate> template_;
  std::vector<std::string> template_names_;
  Json special_tokens_ = Json::object();
  std::vector<std::int32_t> stop_ids_;
};

}  // namespace antisd::inline serve
