#include "eval/results/sample_row.h"

#include <limits>

#include <fmt/format.h>

#include "core/check.h"
#include "core/error.h"

namespace antisd::inline eval {
namespace {

// -1 if it is not a count. A number that is out of range must not be converted.
std::int64_t count_at(const Json& json, const char* key) {
  const Json& value = json.at(key);
  if (!value.is_number_integer()) return -1;
  const bool fits = !value.is_number_unsigned() ||
                    value.get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max();
  return fits ? value.get<std::int64_t>() : -1;
}

}  // namespace

Json to_json(const SampleRow& row) {
  return {{"id", row.id},
          {"problem", row.problem},
          {"sample", row.sample},
          {"response", row.response},
          {"extracted", row.extracted},
          {"correct", row.correct ? Json(*row.correct) : Json(nullptr)},
          {"reason", row.reason},
          {"truncated", row.truncated},
          {"tokens", row.tokens},
          {"settings", row.settings}};
}

SampleRow sample_row_from(const Json& json, const std::string& where) {
  try {
    SampleRow row{.id = json.at("id").get<std::string>(),
                  .problem = count_at(json, "problem"),
                  .sample = count_at(json, "sample"),
                  .response = json.at("response").get<std::string>(),
                  .extracted = json.at("extracted").get<std::string>(),
                  .correct = {},
                  .reason = json.at("reason").get<std::string>(),
                  .truncated = json.at("truncated").get<bool>(),
                  .tokens = count_at(json, "tokens"),
                  .settings = json.at("settings").get<std::string>()};
    if (!json.at("correct").is_null()) row.correct = json.at("correct").get<bool>();
    if (row.problem >= 0 && row.sample >= 0 && row.tokens >= 0) return row;
  } catch (const Json::exception&) {
    // The details of a damaged row are not useful.
  }
  throw InputError("not a sample of an evaluation",
                   {.where = where, .remedy = "remove the line, or evaluate again"});
}

std::vector<ProblemCount> count_problems(std::span<const SampleRow> rows, std::int64_t problems) {
  std::vector<ProblemCount> counts(static_cast<std::size_t>(problems));
  for (const SampleRow& row : rows) {
    ANTISD_CHECK_LT(row.problem, problems);
    if (!row.correct) continue;
    ProblemCount& count = counts[static_cast<std::size_t>(row.problem)];
    ++count.graded;
    count.right += *row.correct;
  }
  return counts;
}

}  // namespace antisd::inline eval
