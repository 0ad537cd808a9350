// The normalizer of a tokenizer file: text -> text, before anything is split.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "io/json.h"
#include "text/tokenizer/regex.h"
#include "text/tokenizer/unicode.h"

namespace antisd::inline text {

class Normalizer {
 public:
  Normalizer() = default;  // does not change the text
  static Normalizer nfc();
  // `value` is the file's "normalizer", or null. Throws InputError for an unknown kind.
  static Normalizer from_json(const SortedJson& value, const std::string& where);

  // True if a cheap check shows that apply() would not change the text.
  bool leaves(std::string_view text) const;
  std::string apply(std::string_view text) const;

 private:
  struct Lowercase {};
  struct Prepend {
    std::string content;
  };
  struct Replace {
    Regex pattern;
    std::string content;
  };
  struct Strip {
    bool left, right;
  };
  using Step = std::variant<NormalForm, Lowercase, Prepend, Replace, Strip>;

  static Step step_from_json(const SortedJson& value, const std::string& where);

  std::vector<Step> steps_;
};

// The pattern of a Split or Replace: {"String": ...} or {"Regex": ...}.
Regex pattern_from_json(const SortedJson& value, const std::string& where);

}  // namespace antisd::inline text
