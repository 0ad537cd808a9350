#include "reward/text_terms.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include <fmt/format.h>

#include "core/error.h"
#include "core/utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace antisd::inline reward {
namespace {

constexpr std::uint32_t kTermMatchLimit = 10'000'000;  // steps; a second or so
constexpr std::uint32_t kTermHeapKib = 64 << 10;

std::string pcre2_message(int code) {
  unsigned char text[256];
  const int length = pcre2_get_error_message(code, text, sizeof text);
  return length > 0 ? std::string(reinterpret_cast<const char*>(text)) : fmt::format("{}", code);
}

PCRE2_SPTR bytes_of(const std::string& text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data());
}

}  // namespace

struct FormatTerm::Pattern {
  pcre2_code* code = nullptr;
  pcre2_match_context* limits = pcre2_match_context_create(nullptr);
  Pattern() = default;
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  ~Pattern() {
    pcre2_code_free(code);
    pcre2_match_context_free(limits);
  }
};

FormatTerm::FormatTerm(const std::string& pattern) {
  auto made = std::make_unique<Pattern>();
  int error = 0;
  PCRE2_SIZE offset = 0;
  made->code = pcre2_compile(bytes_of(pattern), pattern.size(),
                             PCRE2_UTF | PCRE2_UCP | PCRE2_DOTALL | PCRE2_ANCHORED |
                                 PCRE2_ENDANCHORED | PCRE2_NEVER_BACKSLASH_C,
                             &error, &offset, nullptr);
  if (made->code == nullptr) {
    throw InputError(fmt::format("the regular expression {} is not valid at character {}: {}",
                                 pattern, offset, pcre2_message(error)),
                     {.remedy = "write for example format <think>.*</think>.*"});
  }
  pcre2_set_match_limit(made->limits, kTermMatchLimit);
  pcre2_set_heap_limit(made->limits, kTermHeapKib);
  pattern_ = std::move(made);
}

FormatTerm::~FormatTerm() = default;

Verdict FormatTerm::grade(const GradeRequest& request) {
  const std::string text = replace_invalid_utf8(request.response);
  const std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)> found(
      pcre2_match_data_create(1, nullptr), pcre2_match_data_free);
  const int count = pcre2_match(pattern_->code, bytes_of(text), text.size(), 0, PCRE2_NO_UTF_CHECK,
                                found.get(), pattern_->limits);
  if (count >= 0) return right_verdict();
  if (count == PCRE2_ERROR_NOMATCH) return wrong_verdict("", "it does not have the form");
  return {.reward = {}, .reason = "the regular expression gave up: " + pcre2_message(count)};
}

LengthTerm::LengthTerm(const std::string& range) {
  std::istringstream words(range);
  std::string unit, rest;
  words >> unit >> from_ >> to_;
  const bool is_read = !words.fail() && !(words >> rest);
  in_tokens_ = unit == "tokens";
  if (!is_read || (!in_tokens_ && unit != "characters") || !(from_ >= 0) || !(to_ > from_)) {
    throw InputError(fmt::format("'{}' is not a range of lengths", range),
                     {.remedy = "write tokens FROM TO or characters FROM TO, with FROM below TO"});
  }
}

Verdict LengthTerm::grade(const GradeRequest& request) {
  const auto starts_character = [](char byte) { return (byte & 0xC0) != 0x80; };
  const auto length =
      static_cast<double>(in_tokens_ ? std::ssize(request.ids)
                                     : std::ranges::count_if(request.response, starts_character));
  return {.reward = std::clamp((length - from_) / (to_ - from_), 0.0, 1.0), .reason = ""};
}

}  // namespace antisd::inline reward

#undef PCRE2_CODE_UNIT_WIDTH
