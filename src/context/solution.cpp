#include "context/solution.h"

namespace antisd::inline context {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD: half a character at the cut

}  // namespace

std::string shorten_solution(const Tokenizer& tokenizer, const std::string& text,
                             std::int64_t budget) {
  const std::vector<TokenId> ids = tokenizer.encode(text);
  if (std::ssize(ids) <= budget) return text;
  const std::int64_t head_tokens = budget / 4;
  const std::span<const TokenId> all(ids);
  std::string head = tokenizer.decode(all.first(head_tokens));
  std::string tail = tokenizer.decode(all.last(budget - head_tokens));
  while (head.ends_with(kReplacement))
    head.resize(head.size() - kReplacement.size());
  while (tail.starts_with(kReplacement))
    tail.erase(0, kReplacement.size());
  return head + std::string(kCutMarker) + tail;
}

}  // namespace antisd::inline context
