#include "text/text_stream.h"

#include <algorithm>

#include "core/error.h"

namespace antisd::inline text {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

}  // namespace

std::string readable_text(const Tokenizer& tokenizer, std::span<const std::int32_t> ids) {
  std::vector<TokenId> known;
  for (const std::int32_t id : ids)
    if (id < tokenizer.vocabulary_size()) known.push_back(id);
  return tokenizer.decode(known, /*skip_special_tokens=*/true);
}

std::string TextStream::add(std::int32_t id) {
  if (id < tokenizer_.vocabulary_size()) ids_.push_back(id);
  return piece(/*at_end=*/false);
}

std::string TextStream::finish() {
  return piece(/*at_end=*/true);
}

std::string TextStream::piece(bool at_end) {
  const std::span<const TokenId> all(ids_);
  const std::string before =
      tokenizer_.decode(all.subspan(context_, shown_ - context_), /*skip_special_tokens=*/true);
  const std::string text = tokenizer_.decode(all.subspan(context_), /*skip_special_tokens=*/true);
  if (text.size() <= before.size() || (!at_end && text.ends_with(kReplacement))) return "";
  context_ = shown_;
  shown_ = ids_.size();
  return text.substr(before.size());
}

StopStrings::StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {
  for (const std::string& stop : strings_) {
    if (stop.empty()) {
      throw InputError("a stop string is empty",
                       {.where = "--stop", .remedy = "give at least one character"});
    }
    longest_ = std::max(longest_, stop.size());
  }
}

std::optional<std::size_t> StopStrings::find(const std::string& text) const {
  std::size_t first = std::string::npos;
  for (const std::string& stop : strings_)
    first = std::min(first, text.find(stop));
  return first == std::string::npos ? std::nullopt : std::optional(first);
}

bool StopStrings::complete(const Tokenizer& tokenizer, std::span<const std::int32_t> ids) const {
  // A visible token adds at least one byte; the margin is for tokens that add none.
  const std::size_t tail = std::min(ids.size(), longest_ + 16);
  return find(readable_text(tokenizer, ids.last(tail))).has_value();
}

}  // namespace antisd::inline text
