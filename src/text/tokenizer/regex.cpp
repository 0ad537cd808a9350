#include "text/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include "core/error.h"

namespace antisd::inline text {
namespace {

constexpr std::size_t kMaxPatternBytes = 20'000;
constexpr std::uint32_t kMaxNesting = 100;
constexpr std::uint32_t kMatchLimit = 50'000'000;
constexpr std::size_t kJitStackBytes = 1 << 20;

struct MatchContext {
  MatchContext() {
    pcre2_set_match_limit(context, kMatchLimit);
    pcre2_set_heap_limit(context, 64 << 10);  // KiB, for the interpreter
    pcre2_jit_stack_assign(context, nullptr, jit_stack);
  }
  ~MatchContext() {
    pcre2_match_data_free(data);
    pcre2_jit_stack_free(jit_stack);
    pcre2_match_context_free(context);
  }
  MatchContext(const MatchContext&) = delete;
  MatchContext& operator=(const MatchContext&) = delete;

  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* jit_stack = pcre2_jit_stack_create(32 << 10, kJitStackBytes, nullptr);
  // Only the whole match is needed; PCRE2 returns 0 if there are more groups.
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
};

std::string error_text(int code) {
  char buffer[256];
  const int length =
      pcre2_get_error_message(code, reinterpret_cast<PCRE2_UCHAR*>(buffer), sizeof buffer);
  return length > 0 ? std::string(buffer, length) : fmt::format("error {}", code);
}

std::size_t code_point_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

}  // namespace

struct Regex::Code {
  pcre2_code* code = nullptr;
  ~Code() { pcre2_code_free(code); }
};

Regex::Regex(std::string_view pattern, const std::string& where)
    : pattern_(pattern), where_(where) {
  if (pattern.size() > kMaxPatternBytes) {
    throw InputError(fmt::format("a regular expression of {} bytes", pattern.size()),
                     {where, fmt::format("use at most {}", kMaxPatternBytes)});
  }
  const std::string translated = translate_regex(pattern, where);
  const std::unique_ptr<pcre2_compile_context, void (*)(pcre2_compile_context*)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context.get(), kMaxNesting);
  int error = 0;
  PCRE2_SIZE offset = 0;
  auto code = std::make_shared<Code>();
  code->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                             PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                             &error, &offset, context.get());
  if (code->code == nullptr) {
    throw InputError(
        fmt::format("the regular expression {} is not valid: {}", pattern, error_text(error)),
        {where, "fix the pattern"});
  }
  pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE);  // without it, matching is only slower
  code_ = std::move(code);
}

void Regex::for_each_match(std::string_view text,
                           const std::function<void(std::size_t, std::size_t)>& visit) const {
  thread_local const MatchContext match;
  std::size_t from = 0;
  std::size_t last_end = std::string_view::npos;
  while (from <= text.size()) {
    const int count = pcre2_match(code_->code, reinterpret_cast<PCRE2_SPTR>(text.data()),
                                  text.size(), from, PCRE2_NO_UTF_CHECK, match.data, match.context);
    if (count == PCRE2_ERROR_NOMATCH) return;
    if (count < 0) {
      throw InputError(fmt::format("the regular expression {} gave up at byte {} of a text: {}",
                                   pattern_, from, error_text(count)),
                       {where_, "use a simpler pattern or a shorter text"});
    }
    const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(match.data);
    const std::size_t begin = offsets[0], end = offsets[1];
    if (begin == end && begin == last_end) {
      // An empty match directly after the last one does not count.
      if (begin >= text.size()) return;
      from = begin + code_point_length(text[begin]);
      continue;
    }
    visit(begin, end);
    from = last_end = end;
  }
}

std::string Regex::replace_all(std::string_view text, std::string_view content) const {
  std::string result;
  std::size_t done = 0;
  for_each_match(text, [&](std::size_t begin, std::size_t end) {
    result += text.substr(done, begin - done);
    result += content;
    done = end;
  });
  result += text.substr(done);
  return result;
}

}  // namespace antisd::inline text
