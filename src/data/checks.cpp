#include "data/checks.h"

#include <unordered_map>
#include <unordered_set>

#include "data/normalise.h"
#include "data/overlap.h"
#include "data/prompt_set.h"

namespace antisd::inline data {
namespace {

void note(Finding& finding, const std::string& example, std::size_t limit) {
  ++finding.count;
  if (finding.examples.size() < limit) finding.examples.push_back(example);
}

void check_rows(const PromptSet& prompts, const CheckOptions& options, DataReport& report) {
  std::unordered_map<std::string, std::size_t> first_row;  // normalised text -> row
  std::unordered_set<std::string> ids;
  const bool tokens = options.count_tokens != nullptr;
  const std::int64_t limit = tokens ? options.max_prompt_tokens : options.max_prompt_characters;
  report.long_limit = fmt::format("{} {}", limit, tokens ? "tokens" : "characters");
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const Problem& problem = prompts[i];
    const std::string text = prompt_text(problem);
    const auto [entry, fresh] = first_row.emplace(normalised_text(text), i);
    if (!fresh) {
      const Problem& earlier = prompts[entry->second];
      const std::string pair = fmt::format("{} = {}", problem.id, earlier.id);
      note(report.duplicates, pair, options.examples);
      if (normalised_text(problem.answer) != normalised_text(earlier.answer)) {
        note(report.conflicting_answers, pair, options.examples);
      }
    }
    if (!ids.insert(problem.id).second) note(report.repeated_ids, problem.id, options.examples);
    if (problem.tests.is_null() && normalised_text(problem.answer).empty()) {
      note(report.empty_answers, problem.id, options.examples);
    }
    const std::int64_t length = tokens ? options.count_tokens(problem) : count_characters(text);
    report.longest_prompt = std::max(report.longest_prompt, length);
    if (length > limit) note(report.long_prompts, problem.id, options.examples);
  }
}

BenchmarkOverlap check_overlap(const PromptSet& prompts, const std::string& file,
                               const CheckOptions& options) {
  const PromptSet benchmark = PromptSet::load({.files = {file}, .require_answer = false});
  std::vector<std::string> texts;
  for (const Problem& problem : benchmark)
    texts.push_back(prompt_text(problem));
  OverlapIndex index(texts, options.near_duplicate);
  for (const Problem& problem : prompts)
    index.add(prompt_text(problem));

  BenchmarkOverlap overlap{.file = file, .problems = static_cast<std::int64_t>(benchmark.size())};
  overlap.rows = index.rows_found();
  for (std::size_t i = 0; i < benchmark.size(); ++i) {
    const OverlapMatch& best = index.best(i);
    if (!best.exact && best.containment <= options.near_duplicate) continue;
    ++(best.exact ? overlap.exact : overlap.near);
    overlap.matches.push_back({benchmark[i].id, prompts[static_cast<std::size_t>(best.row)].id,
                               best.exact, best.containment});
  }
  return overlap;
}

std::string finding_line(const std::string& name, const Finding& finding) {
  std::string line = fmt::format("{:<22} {}", name, finding.count);
  if (!finding.examples.empty()) {
    const bool more = finding.count > static_cast<std::int64_t>(finding.examples.size());
    line += fmt::format("   {}{}", fmt::join(finding.examples, ", "), more ? ", ..." : "");
  }
  return line + "\n";
}

Json finding_json(const Finding& finding) {
  return {{"count", finding.count}, {"examples", finding.examples}};
}

}  // namespace

bool DataReport::clean() const {
  for (const Finding* finding : {&duplicates, &repeated_ids, &empty_answers, &long_prompts}) {
    if (finding->count > 0) return false;
  }
  return std::all_of(overlaps.begin(), overlaps.end(), [](const BenchmarkOverlap& overlap) {
    return overlap.exact + overlap.near == 0;
  });
}

std::string DataReport::text() const {
  std::string text;
  for (const auto& [file, count] : files)
    text += fmt::format("{}: {} rows\n", file, count);
  text += finding_line("duplicate problems", duplicates);
  text += finding_line("  with other answers", conflicting_answers);
  text += finding_line("repeated ids", repeated_ids);
  text += finding_line("empty answers", empty_answers);
  text += finding_line("over " + long_limit, long_prompts);
  text += fmt::format("{:<22} {}\n", "longest prompt", longest_prompt);
  for (const BenchmarkOverlap& overlap : overlaps) {
    text += fmt::format(
        "overlap with {} ({} problems): {} exact, {} near (5-gram containment > {})\n",
        overlap.file, overlap.problems, overlap.exact, overlap.near, near_duplicate, overlap.rows);
    for (const BenchmarkMatch& match : overlap.matches) {
      text += fmt::format("  {} = {}   {}\n", match.benchmark_id, match.row_id,
                          match.exact ? "exact" : fmt::format("{:.2f}", match.containment));
    }
  }
  return text;
}

Json DataReport::to_json() const {
  Json file_list = Json::array();
  for (const auto& [file, count] : files)
    file_list.push_back({{"file", file}, {"rows", count}});
  Json overlap_list = Json::array();
  for (const BenchmarkOverlap& overlap : overlaps) {
    Json matches = Json::array();
    for (const BenchmarkMatch& match : overlap.matches) {
      matches.push_back({{"benchmark_id", match.benchmark_id},
                         {"row_id", match.row_id},
                         {"exact", match.exact},
                         {"containment", match.containment}});
    }
    overlap_list.push_back({{"file", overlap.file},
                            {"problems", overlap.problems},
                            {"exact", overlap.exact},
                            {"near", overlap.near},
                            {"rows", overlap.rows},
                            {"matches", std::move(matches)}});
  }
  return {{"rows", rows},
          {"files", std::move(file_list)},
          {"duplicates", finding_json(duplicates)},
          {"conflicting_answers", finding_json(conflicting_answers)},
          {"repeated_ids", finding_json(repeated_ids)},
          {"empty_answers", finding_json(empty_answers)},
          {"long_prompts", finding_json(long_prompts)},
          {"long_limit", long_limit},
          {"longest_prompt", longest_prompt},
          {"near_duplicate", near_duplicate},
          {"overlaps", std::move(overlap_list)}};
}

DataReport check_data(const std::vector<std::string>& files, const CheckOptions& options) {
  DataReport report;
  PromptSetReport counts;
  const PromptSet prompts =
      PromptSet::load({.files = files, .map = options.map, .require_answer = false}, &counts);
  for (std::size_t i = 0; i < files.size(); ++i) {
    report.files.emplace_back(files[i], counts.rows_of_files[i]);
  }
  report.rows = counts.read;
  report.notes = counts.notes;
  report.near_duplicate = options.near_duplicate;
  check_rows(prompts, options, report);
  for (const std::string& file : options.against) {
    report.overlaps.push_back(check_overlap(prompts, file, options));
  }
  return report;
}

}  // namespace antisd::inline data
