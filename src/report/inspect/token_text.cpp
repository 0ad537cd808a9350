#include "report/inspect/token_text.h"

#include <cstdio>

#include <fmt/format.h>

#include "core/utf8.h"
#include "text/tokenizer/bpe.h"

namespace antisd::inline report {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";

bool is_known(const Tokenizer& tokenizer, TokenId id) {
  return id >= 0 && id < tokenizer.vocabulary_size() && !tokenizer.id_to_token(id).empty();
}

// The bytes of a token that is not valid UTF-8 by itself: "<0xE4>", or symbols that stand for
// bytes.
std::string raw_bytes(const std::string& token) {
  unsigned byte = 0;
  if (token.size() == 6 && std::sscanf(token.c_str(), "<0x%2X>", &byte) == 1)
    return std::string(1, static_cast<char>(byte));
  return symbols_to_bytes(token).value_or(token);
}

bool is_part_of_character(const Tokenizer& tokenizer, TokenId id) {
  const std::string text = tokenizer.decode({&id, 1});
  return text.find(kReplacement) != std::string::npos;
}

// The text that `id` adds after `before`; decoders treat the first token of a text specially.
std::string added_text(const Tokenizer& tokenizer, TokenId before, TokenId id) {
  const TokenId both[] = {before, id};
  const std::string with = tokenizer.decode(both), without = tokenizer.decode({both, 1});
  return with.starts_with(without) ? with.substr(without.size()) : tokenizer.decode({&id, 1});
}

}  // namespace

std::string escape_ill_formed(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const std::size_t bad = find_invalid_utf8(bytes).value_or(bytes.size());
    out += bytes.substr(0, bad);
    bytes.remove_prefix(bad);
    if (bytes.empty()) break;
    out += fmt::format("\\x{:02X}", static_cast<unsigned char>(bytes.front()));
    bytes.remove_prefix(1);
  }
  return out;
}

std::string escape_controls(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = next_code_point(text, at);
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c < 0x20 || (c >= 0x7F && c < 0xA0)) {
      out += fmt::format("\\x{:02X}", static_cast<unsigned>(c));
    } else if ((c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069)) {
      out += fmt::format("\\u{:04X}", static_cast<unsigned>(c));  // line ends, writing direction
    } else {
      out += text.substr(begin, at - begin);
    }
  }
  return out;
}

std::vector<std::string> token_texts(const Tokenizer& tokenizer, std::span<const TokenId> ids,
                                     TokenId before) {
  std::vector<std::string> texts;
  texts.reserve(ids.size());
  // From here on `before` is the last token with complete characters.
  if (!is_known(tokenizer, before) || is_part_of_character(tokenizer, before)) before = -1;
  for (const TokenId id : ids) {
    if (!is_known(tokenizer, id)) {
      texts.push_back(fmt::format("<id {}>", id));
      continue;
    }
    if (is_part_of_character(tokenizer, id)) {
      texts.push_back(escape_ill_formed(raw_bytes(tokenizer.id_to_token(id))));
      continue;
    }
    texts.push_back(before < 0 ? tokenizer.decode({&id, 1}) : added_text(tokenizer, before, id));
    before = id;
  }
  return texts;
}

std::string token_name(const Tokenizer& tokenizer, TokenId id) {
  if (!is_known(tokenizer, id)) return fmt::format("<id {}>", id);
  const std::string token = tokenizer.id_to_token(id);
  if (is_part_of_character(tokenizer, id)) return escape_ill_formed(raw_bytes(token));
  if (tokenizer.decode({&id, 1}) == token) return token;
  return added_text(tokenizer, id, id);
}

}  // namespace antisd::inline report
