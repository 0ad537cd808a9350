#include "text/tokenizer/token_decoder.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "core/utf8.h"
#include "text/tokenizer/bpe.h"
#include "text/tokenizer/json_fields.h"
#include "text/tokenizer/normalizer.h"

namespace antisd::inline text {
namespace {

std::string join(const std::vector<std::string>& tokens, std::string_view separator) {
  return fmt::format("{}", fmt::join(tokens, separator));
}

// The byte of "<0xHH>", or -1.
int fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int value = 0;
  for (const char c : token.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

void replace_in_place(std::string& text, std::string_view from, std::string_view to) {
  std::string result;
  std::size_t done = 0;
  for (std::size_t at; (at = text.find(from, done)) != std::string::npos; done = at + from.size()) {
    result.append(text, done, at - done).append(to);
  }
  text = result.append(text, done);
}

}  // namespace

std::string clean_up_spaces(std::string text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kReplacements = {{
      {" .", "."},
      {" ?", "?"},
      {" !", "!"},
      {" ,", ","},
      {" ' ", "'"},
      {" n't", "n't"},
      {" 'm", "'m"},
      {" 's", "'s"},
      {" 've", "'ve"},
      {" 're", "'re"},
  }};
  for (const auto& [from, to] : kReplacements)
    replace_in_place(text, from, to);
  return text;
}

struct TokenDecoder::Worker {
  std::vector<std::string>& tokens;

  void operator()(const ByteLevel&) const {
    std::string bytes;
    for (const std::string& token : tokens)
      bytes += token_bytes(token);
    tokens = {replace_invalid_utf8(bytes)};
  }

  // A run of byte tokens is text if it is valid UTF-8, otherwise one U+FFFD per byte.
  void operator()(const ByteFallback&) const {
    std::vector<std::string> result;
    std::string bytes;
    const auto flush = [&] {
      if (bytes.empty()) return;
      if (!find_invalid_utf8(bytes)) {
        result.push_back(bytes);
      } else {
        result.insert(result.end(), bytes.size(), "\uFFFD");
      }
      bytes.clear();
    };
    for (std::string& token : tokens) {
      if (const int byte = fallback_byte(token); byte >= 0) {
        bytes += static_cast<char>(byte);
      } else {
        flush();
        result.push_back(std::move(token));
      }
    }
    flush();
    tokens = std::move(result);
  }

  void operator()(const Fuse&) const { tokens = {join(tokens, "")}; }

  void operator()(const Replace& replace) const {
    for (std::string& token : tokens)
      token = replace.pattern.replace_all(token, replace.content);
  }

  void operator()(const Strip& strip) const {
    for (std::string& token : tokens) {
      std::string_view left = token;
      for (auto i = strip.start; i > 0 && left.starts_with(strip.content); --i) {
        left.remove_prefix(strip.content.size());
      }
      for (auto i = strip.stop; i > 0 && left.ends_with(strip.content); --i) {
        left.remove_suffix(strip.content.size());
      }
      token = std::string(left);
    }
  }

  void operator()(const Metaspace& metaspace) const {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const bool drops = i == 0 && metaspace.prepend != Metaspace::Prepend::kNever;
      replace_in_place(tokens[i], metaspace.replacement, drops ? "" : " ");
    }
  }

  void operator()(const WordPiece& word_piece) const {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      if (i > 0) {
        token = token.starts_with(word_piece.prefix) ? token.substr(word_piece.prefix.size())
                                                     : " " + token;
      }
      if (word_piece.cleanup) {
        token = clean_up_spaces(std::move(token));
        replace_in_place(token, " do not", " don't");
      }
    }
  }
};

TokenDecoder TokenDecoder::byte_level() {
  TokenDecoder decoder;
  decoder.steps_.emplace().push_back(ByteLevel{});
  return decoder;
}

TokenDecoder TokenDecoder::from_json(const SortedJson& value, const std::string& where) {
  TokenDecoder decoder;
  if (value.is_null()) return decoder;
  decoder.steps_.emplace();
  for (const auto& [member, member_where] : flatten_sequence(value, "decoders", where)) {
    decoder.steps_->push_back(step_from_json(member, member_where));
  }
  return decoder;
}

TokenDecoder::Step TokenDecoder::step_from_json(const SortedJson& value, const std::string& where) {
  const JsonFields fields(value, where);
  const std::string type = fields.string("type");
  if (type == "Metaspace") return Metaspace::from_json(value, where);
  if (type == "ByteLevel") {
    fields.allow({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    return ByteLevel{};
  }
  if (type == "Replace") {
    fields.allow({"type", "pattern", "content"});
    return Replace{pattern_from_json(fields.get("pattern"), fields.where("pattern")),
                   fields.string("content")};
  }
  if (type == "Strip") {
    fields.allow({"type", "content", "start", "stop"});
    const Strip strip{fields.string("content"), fields.integer("start"), fields.integer("stop")};
    if (strip.content.empty() || strip.start < 0 || strip.stop < 0) {
      fields.fail("Strip needs a character and counts that are not negative", "fix the file");
    }
    return strip;
  }
  if (type == "WordPiece") {
    fields.allow({"type", "prefix", "cleanup"});
    return WordPiece{fields.string("prefix"), fields.boolean("cleanup")};
  }
  fields.allow({"type"});
  if (type == "ByteFallback") return ByteFallback{};
  if (type == "Fuse") return Fuse{};
  fields.fail(fmt::format("the decoder {} is not supported", type),
              "known are ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace, WordPiece and "
              "Sequence");
}

bool TokenDecoder::is_byte_level() const {
  return steps_ && steps_->size() == 1 && std::holds_alternative<ByteLevel>(steps_->front());
}

std::string TokenDecoder::token_bytes(std::string_view token) {
  return symbols_to_bytes(token).value_or(std::string(token));
}

std::string TokenDecoder::decode(std::vector<std::string> tokens) const {
  if (!steps_) return join(tokens, " ");
  for (const Step& step : *steps_)
    std::visit(Worker{tokens}, step);
  return join(tokens, "");
}

}  // namespace antisd::inline text
