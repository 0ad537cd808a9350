#include "text/tokenizer/normalizer.h"

#include <fmt/format.h>

#include "core/error.h"
#include "text/tokenizer/json_fields.h"

namespace antisd::inline text {
namespace {

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;  // clang 14 needs this deduction guide

constexpr std::size_t kMaxReplacementBytes = 1024;

std::string content_of(const JsonFields& fields, std::string_view key) {
  std::string content = fields.string(key);
  if (content.size() > kMaxReplacementBytes) {
    fields.fail(fmt::format("\"{}\" has {} bytes", key, content.size()),
                fmt::format("use at most {}", kMaxReplacementBytes));
  }
  return content;
}

}  // namespace

Regex pattern_from_json(const SortedJson& value, const std::string& where) {
  const JsonFields fields(value, where);
  fields.allow({"String", "Regex"});
  if (fields.has("String") == fields.has("Regex")) {
    fields.fail("a pattern is either {\"String\": ...} or {\"Regex\": ...}", "give one of them");
  }
  const bool literal = fields.has("String");
  const std::string pattern = fields.string(literal ? "String" : "Regex");
  if (pattern.empty()) fields.fail("the pattern is empty", "give a pattern");
  return Regex(literal ? escape_regex(pattern) : pattern, where);
}

Normalizer Normalizer::nfc() {
  Normalizer normalizer;
  normalizer.steps_.push_back(NormalForm::kNfc);
  return normalizer;
}

Normalizer Normalizer::from_json(const SortedJson& value, const std::string& where) {
  Normalizer normalizer;
  for (const auto& [member, member_where] : flatten_sequence(value, "normalizers", where)) {
    normalizer.steps_.push_back(step_from_json(member, member_where));
  }
  return normalizer;
}

Normalizer::Step Normalizer::step_from_json(const SortedJson& value, const std::string& where) {
  const JsonFields fields(value, where);
  const std::string type = fields.string("type");
  if (type == "Prepend") {
    fields.allow({"type", "prepend"});
    return Prepend{content_of(fields, "prepend")};
  }
  if (type == "Replace") {
    fields.allow({"type", "pattern", "content"});
    return Replace{pattern_from_json(fields.get("pattern"), fields.where("pattern")),
                   content_of(fields, "content")};
  }
  if (type == "Strip") {
    fields.allow({"type", "strip_left", "strip_right"});
    return Strip{fields.boolean("strip_left"), fields.boolean("strip_right")};
  }
  fields.allow({"type"});
  if (type == "NFC") return NormalForm::kNfc;
  if (type == "NFD") return NormalForm::kNfd;
  if (type == "NFKC") return NormalForm::kNfkc;
  if (type == "NFKD") return NormalForm::kNfkd;
  if (type == "Lowercase") return Lowercase{};
  fields.fail(fmt::format("the normalizer {} is not supported", type),
              "known are NFC, NFD, NFKC, NFKD, Lowercase, Prepend, Replace, Strip and Sequence");
}

bool Normalizer::leaves(std::string_view text) const {
  for (const Step& step : steps_) {
    const NormalForm* form = std::get_if<NormalForm>(&step);
    if (form == nullptr || !is_surely_normal(text, *form)) return false;
  }
  return true;
}

std::string Normalizer::apply(std::string_view text) const {
  // Replacements that produce further matches could grow without end.
  const std::size_t limit = text.size() * 64 + (1 << 20);
  std::string result(text);
  for (const Step& step : steps_) {
    result = std::visit(
        Overloaded{[&](NormalForm form) { return normalize(result, form); },
                   [&](const Lowercase&) { return to_lowercase(result); },
                   [&](const Prepend& prepend) {
                     return result.empty() ? result : prepend.content + result;
                   },
                   [&](const Replace& replace) {
                     return replace.pattern.replace_all(result, replace.content);
                   },
                   [&](const Strip& side) {
                     return std::string(strip(result, side.left, side.right, is_white_space));
                   }},
        step);
    if (result.size() > limit) {
      throw InputError(
          fmt::format("normalization makes {} bytes of {}", result.size(), text.size()),
          {"", "check the normalizer's replacements"});
    }
  }
  return result;
}

}  // namespace antisd::inline text
