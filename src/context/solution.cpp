#include "context/solution.h"

#include <fmt/format.h>

#include "core/error.h"

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

std::string column_text(const Problem& problem, const std::string& column) {
  const Json* value = find_column(problem.row, column);
  if (value != nullptr && value->is_string()) return value->get<std::string>();
  if (value != nullptr && value->is_null()) return "";
  const std::string where = fmt::format("data.train, problem '{}'", problem.id);
  if (value == nullptr) {
    throw InputError(
        fmt::format("no column '{}'; the row has: {}", column, list_columns(problem.row)),
        {.where = where, .remedy = "correct context.column, or leave it out"});
  }
  throw InputError(fmt::format("'{}' is not text but {}", column, value->type_name()),
                   {.where = where, .remedy = "name a column of text in context.column"});
}

}  // namespace antisd::inline context
