#include "data/prompt_set.h"

#include <unordered_set>

#include <xxhash.h>

#include "core/check.h"
#include "core/error.h"
#include "data/normalise.h"
#include "data/row_reader.h"

namespace antisd::inline data {
namespace {

constexpr std::size_t kExamples = 5;

// Bytes per token that no text reaches on average: the longest tokens of real vocabularies have
// half as many.
constexpr std::int64_t kMostTokenBytes = 256;

std::int64_t prompt_bytes(const Problem& problem) {
  std::int64_t bytes = std::ssize(problem.problem);
  for (const ChatMessage& message : problem.messages)
    bytes += std::ssize(message.content);
  return bytes;
}

// The reasons to drop a row, in the order they are checked.
class Filter {
 public:
  explicit Filter(const PromptSetOptions& options) : options_(options) {
    ANTISD_CHECK(options.max_prompt_tokens == 0 || options.count_tokens != nullptr);
  }

  // The reason to drop the problem, or "".
  std::string reason(const Problem& problem) {
    if (options_.drop_empty_answers && problem.tests.is_null() &&
        problem.answer.find_first_not_of(" \t\r\n") == std::string::npos) {
      return "empty answer";
    }
    if (options_.max_prompt_characters > 0 &&
        count_characters(prompt_text(problem)) > options_.max_prompt_characters) {
      return fmt::format("prompt over {} characters", options_.max_prompt_characters);
    }
    if (options_.drop_duplicates && !seen_.insert(normalised_text(prompt_text(problem))).second) {
      return "duplicate problem";
    }
    if (options_.max_prompt_tokens == 0) return "";
    // Megabytes of text are too long without tokenizing, and a template may fail on them.
    const bool is_huge = prompt_bytes(problem) / kMostTokenBytes > options_.max_prompt_tokens;
    if (is_huge || options_.count_tokens(problem) > options_.max_prompt_tokens)
      return fmt::format("prompt over {} tokens", options_.max_prompt_tokens);
    return "";
  }

 private:
  const PromptSetOptions& options_;
  std::unordered_set<std::string> seen_;
};

void count_drop(PromptSetReport& report, const std::string& reason, const std::string& id) {
  auto entry = std::find_if(report.dropped.begin(), report.dropped.end(),
                            [&](const DroppedRows& rows) { return rows.reason == reason; });
  if (entry == report.dropped.end()) {
    report.dropped.push_back({reason, 0, {}});
    entry = report.dropped.end() - 1;
  }
  ++entry->count;
  if (entry->examples.size() < kExamples) entry->examples.push_back(id);
}

// Adds the row's place to an error of the template.
std::string placed_reason(Filter& filter, const Problem& problem, const std::string& where) {
  try {
    return filter.reason(problem);
  } catch (const InputError& error) {
    throw InputError(fmt::format("problem '{}': {}", problem.id, error.message()),
                     {.where = where});
  }
}

std::string fingerprint_of(const std::vector<Problem>& problems) {
  std::uint64_t hash = problems.size();
  const auto add = [&](const std::string& text) {
    hash = XXH3_64bits_withSeed(text.data(), text.size(), hash);
  };
  for (const Problem& problem : problems) {
    add(problem.id);
    add(problem.problem);
    for (const ChatMessage& message : problem.messages) {
      add(message.role);
      add(message.content);
    }
    add(problem.answer);
    if (problem.solution) add(*problem.solution);
    if (!problem.tests.is_null()) add(to_json_line(problem.tests));
  }
  return fmt::format("{:016x}", hash);
}

std::string join(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string PromptSetReport::text() const {
  std::string text = fmt::format("{} rows read, {} kept", read, kept);
  for (const DroppedRows& rows : dropped) {
    text +=
        fmt::format("; {} left out: {} ({}{})", rows.count, rows.reason, join(rows.examples),
                    rows.count > static_cast<std::int64_t>(rows.examples.size()) ? ", ..." : "");
  }
  for (const std::string& note : notes)
    text += "; " + note;
  return text;
}

PromptSet PromptSet::load(const PromptSetOptions& options, PromptSetReport* report) {
  if (options.files.empty()) {
    throw InputError("no data files are given",
                     {.where = "data.train", .remedy = "name at least one"});
  }
  ProblemParser parser(options.map, options.require_answer, options.keep_rows);
  Filter filter(options);
  PromptSetReport counts;
  PromptSet set;
  for (const std::string& file : options.files) {
    RowReader reader(file);
    const std::int64_t before = counts.read;
    for (Json row; reader.next(row);) {
      ++counts.read;
      Problem problem = parser.parse(row, reader.where(), reader.stem(), reader.row());
      const std::string reason = placed_reason(filter, problem, reader.where());
      if (!reason.empty()) {
        count_drop(counts, reason, problem.id);
        continue;
      }
      set.problems_.push_back(std::move(problem));
    }
    counts.rows_of_files.push_back(counts.read - before);
    if (counts.read == before) {
      throw InputError("the file has no rows",
                       {.where = file, .remedy = "give one problem per row"});
    }
  }
  counts.notes = parser.notes();
  counts.kept = static_cast<std::int64_t>(set.problems_.size());
  if (report != nullptr) *report = counts;
  if (set.problems_.empty()) {
    throw InputError("no problem is left: " + counts.text(),
                     {.where = options.files.front(), .remedy = "relax the filters of [data]"});
  }
  set.fingerprint_ = fingerprint_of(set.problems_);
  return set;
}

}  // namespace antisd::inline data
