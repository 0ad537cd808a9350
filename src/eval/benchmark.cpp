#include "eval/benchmark.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"
#include "core/nearest.h"
#include "data/checks.h"
#include "data/code_rows.h"
#include "data/countdown.h"
#include "data/data_source.h"
#include "data/overlap.h"
#include "data/row_reader.h"
#include "io/text_source.h"
#include "reward/grader.h"

namespace antisd::inline eval {
namespace {

namespace fs = std::filesystem;

constexpr std::array kEndings = {".jsonl", ".parquet",  ".pq",     ".json",
                                 ".csv",   ".jsonl.gz", ".csv.gz", ".json.gz"};
constexpr double kNearDuplicate = 0.6;

// Files whose name is longer than the benchmark's common name.
struct Alias {
  const char *name, *stem;
};
constexpr std::array kAliases = {Alias{"gsm8k", "gsm8k_test"}, Alias{"minerva", "minerva_math"}};
constexpr std::array kMath = {"aime24",  "aime25",  "aime26", "hmmt_feb25",
                              "minerva", "math500", "amc23",  "gsm8k"};

bool has_known_ending(const std::string& name) {
  return std::ranges::any_of(kEndings, [&](const char* ending) { return name.ends_with(ending); });
}

bool is_path(const std::string& text) {
  if (is_countdown_source(text)) return true;
  return text.find('/') != std::string::npos || has_known_ending(text);
}

// Of a file, or of a data set that is given by its name; a bare word is a benchmark's name.
std::string stem_of(const fs::path& file) {
  return file.has_parent_path() ? find_source(file.string()).stem
                                : without_gz(file).stem().string();
}

std::string name_of(const fs::path& file) {
  if (is_countdown_source(file.native())) return CountdownSource::parse(file.string()).name();
  const std::string stem = stem_of(file);
  for (const Alias& alias : kAliases)
    if (stem == alias.stem) return alias.name;
  return stem;
}

// Names of the benchmarks in a folder.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (has_known_ending(entry.path().filename().string())) names.push_back(name_of(entry.path()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

fs::path find_file(const std::string& name, const fs::path& folder) {
  std::vector<std::string> stems = {name};
  for (const Alias& alias : kAliases)
    if (name == alias.name) stems.emplace_back(alias.stem);
  for (const std::string& stem : stems) {
    for (const char* ending : kEndings) {
      const fs::path file = folder / (stem + ending);
      std::error_code error;
      if (fs::is_regular_file(file, error)) return file;
    }
  }
  const std::vector<std::string> names = names_in(folder);
  const std::string nearest = nearest_name(name, names);
  std::string remedy = "set eval.dir to the folder of the benchmark files, or give a path";
  if (!nearest.empty())
    remedy = fmt::format("did you mean '{}'?", nearest);
  else if (!names.empty())
    remedy = fmt::format("there are {}; {}", fmt::join(names, ", "), remedy);
  throw InputError(fmt::format("there is no benchmark '{}' in {}", name, folder.string()),
                   {.where = "eval.benches", .remedy = remedy});
}

bool is_countdown_row(const Json& row) {
  return row.contains("numbers") && row.contains("target") && !row.contains("problem");
}

// "Numbers 4 11 3 6 target 29", the prompt of the task's models.
void spell_countdown(Json& row, const std::string& where) {
  std::string text = "Numbers";
  const Json& numbers = row["numbers"];
  const bool good = numbers.is_array() && row["target"].is_number_integer() &&
                    std::all_of(numbers.begin(), numbers.end(),
                                [](const Json& number) { return number.is_number_integer(); });
  if (!good) {
    throw InputError("'numbers' is not a list of integers, or 'target' is not one",
                     {.where = where, .remedy = R"(e.g. {"numbers": [4, 11, 3], "target": 29})"});
  }
  for (const Json& number : numbers)
    text += " " + number.dump();
  row["problem"] = text + " target " + row["target"].dump();
}

struct ReadRows {
  bool countdown = false;
  std::vector<Problem> problems = {};
  std::int64_t with_tests = 0, without_tests = 0;
  std::vector<std::string> notes = {};
};

ReadRows read_rows_of(const fs::path& file, bool keep_rows) {
  ProblemParser parser({}, /*require_answer=*/false, keep_rows);
  ReadRows read{.countdown = is_countdown_source(file.native())};
  RowReader reader(file);
  for (Json row; reader.next(row);) {
    if (is_raw_code_row(row)) {
      std::optional<Json> native = native_code_row(
          row, reader.where(), reader.stem(), fmt::format("{}-{}", reader.stem(), reader.row()));
      if (!native) {
        ++read.without_tests;
        continue;
      }
      row = std::move(*native);
    } else if (is_countdown_row(row)) {
      spell_countdown(row, reader.where());
      read.countdown = true;
    }
    read.problems.push_back(parser.parse(row, reader.where(), reader.stem(), reader.row()));
    read.with_tests += !read.problems.back().tests.is_null();
  }
  read.notes = parser.notes();
  return read;
}

std::string grader_of(const std::string& name, const ReadRows& read, const RunConfig& config) {
  if (config.reward.kind == "command" || config.reward.kind == "python") return config.reward.kind;
  if (read.with_tests > 0) return "code";
  if (read.countdown) return "countdown";
  const bool known = std::find(kMath.begin(), kMath.end(), name) != kMath.end();
  return known || config.reward.kind == "code" ? "math" : config.reward.kind;
}

void check_gradable(const Benchmark& benchmark) {
  for (const Problem& problem : benchmark.problems) {
    const bool answered = benchmark.grader == "math"   ? !problem.answer.empty()
                          : benchmark.grader == "code" ? !problem.tests.is_null()
                                                       : true;
    if (answered) continue;
    throw InputError(fmt::format("problem '{}' has no {}", problem.id,
                                 benchmark.grader == "math" ? "answer" : "tests while others have"),
                     {.where = benchmark.file.string(),
                      .remedy = "remove it, or set reward.kind to what can grade it"});
  }
}

constexpr const char* kTask = "countdown";  // in eval.n: every benchmark of the built-in task

// The names for a benchmark in eval.n: its own, its file's, and the built-in task's.
std::vector<std::string> keys_of(const fs::path& file) {
  std::vector<std::string> keys = {name_of(file), stem_of(file)};
  if (is_countdown_source(file.native())) keys.emplace_back(kTask);
  return keys;
}

std::int64_t samples_of(const Benchmark& benchmark, const IntegerMap& n) {
  std::vector<std::string> keys = keys_of(benchmark.file);
  keys.emplace_back("default");
  for (const std::string& key : keys)
    if (const auto found = n.find(key); found != n.end()) return found->second;
  return 1;
}

}  // namespace

Benchmark load_benchmark(const std::string& name_or_path, const RunConfig& config) {
  Benchmark benchmark;
  benchmark.file =
      is_path(name_or_path) ? fs::path(name_or_path) : find_file(name_or_path, config.eval.dir);
  benchmark.name = name_of(benchmark.file);
  benchmark.n = samples_of(benchmark, config.eval.n);
  ReadRows read = read_rows_of(benchmark.file, gets_whole_rows(config.reward));
  benchmark.grader = grader_of(benchmark.name, read, config);
  benchmark.problems = std::move(read.problems);
  benchmark.without_tests = read.without_tests;
  benchmark.notes = std::move(read.notes);
  if (benchmark.problems.empty()) {
    throw InputError("the benchmark has no problems",
                     {.where = benchmark.file.string(), .remedy = "give one problem per row"});
  }
  check_gradable(benchmark);
  return benchmark;
}

namespace {

std::vector<std::string> known_sample_counts(const EvalConfig& config) {
  std::vector<std::string> known = {"default", kTask};
  for (const auto& [name, _] : EvalConfig().n)
    known.push_back(name);
  for (const Alias& alias : kAliases)
    known.emplace_back(alias.stem);
  for (const std::string& name : config.benches) {
    for (std::string& key : keys_of(name))
      known.push_back(std::move(key));
  }
  for (const std::string& name : names_in(config.dir))
    known.push_back(name);
  return known;
}

}  // namespace

void drop_unknown_sample_counts(EvalConfig& config, const IntegerMap& of_run) {
  const std::vector<std::string> known = known_sample_counts(config);
  std::erase_if(config.n, [&](const auto& entry) {
    const auto before = of_run.find(entry.first);
    return before != of_run.end() && before->second == entry.second &&
           std::find(known.begin(), known.end(), entry.first) == known.end();
  });
}

void check_sample_counts(const EvalConfig& config) {
  const std::vector<std::string> known = known_sample_counts(config);
  for (const auto& [name, _] : config.n) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string nearest = nearest_name(name, known);
    throw InputError(
        fmt::format("'{}' is neither a known benchmark nor one of eval.benches", name),
        {.where = "eval.n",
         .remedy = nearest.empty() ? "name a benchmark, or default for those without an entry"
                                   : fmt::format("did you mean '{}'?", nearest)});
  }
}

std::vector<Benchmark> load_benchmarks(const RunConfig& config) {
  check_sample_counts(config.eval);
  std::vector<Benchmark> benchmarks;
  std::set<std::string> names;
  for (const std::string& name : config.eval.benches) {
    benchmarks.push_back(load_benchmark(name, config));
    if (names.insert(benchmarks.back().name).second) continue;
    throw InputError(fmt::format("two benchmarks have the name '{}'", benchmarks.back().name),
                     {.where = "eval.benches", .remedy = "name each once"});
  }
  return benchmarks;
}

RewardConfig benchmark_reward(const Benchmark& benchmark, const RewardConfig& reward) {
  RewardConfig own = reward;
  own.kind = benchmark.grader;
  own.terms.clear();
  own.weights.clear();
  own.weight = 1;
  if (benchmark.grader != reward.kind) own.correct_at = 1;
  return own;
}

std::string benchmark_template(const Benchmark& benchmark, const RunConfig& config) {
  const bool own = benchmark.grader == config.reward.kind;
  return own ? config.data.template_name : benchmark.grader;
}

std::vector<std::string> overlap_notes(std::span<const Benchmark> benchmarks,
                                       const std::vector<std::string>& training_files,
                                       const ColumnMap& map) {
  std::vector<OverlapIndex> indices;
  for (const Benchmark& benchmark : benchmarks) {
    std::vector<std::string> texts;
    for (const Problem& problem : benchmark.problems)
      texts.push_back(prompt_text(problem));
    indices.emplace_back(texts, kNearDuplicate);
  }
  ProblemParser parser(map, /*require_answer=*/false);
  for (const std::string& file : training_files) {
    std::error_code ignored;
    if (fs::is_fifo(file, ignored)) continue;  // training has already consumed its rows
    RowReader reader(file);
    for (Json row; reader.next(row);) {
      if (map.empty() && is_raw_code_row(row)) continue;
      const std::string text =
          prompt_text(parser.parse(row, reader.where(), reader.stem(), reader.row()));
      for (OverlapIndex& index : indices)
        index.add(text);
    }
  }
  std::vector<std::string> notes;
  for (std::size_t b = 0; b < benchmarks.size(); ++b) {
    const std::vector<Problem>& problems = benchmarks[b].problems;
    std::vector<std::string> found;
    std::int64_t exact = 0;
    for (std::size_t i = 0; i < problems.size(); ++i) {
      const OverlapMatch& match = indices[b].best(i);
      if (!match.exact && match.containment <= kNearDuplicate) continue;
      exact += match.exact;
      found.push_back(problems[i].id);
    }
    if (found.empty()) continue;
    const std::size_t count = found.size();
    found.resize(std::min<std::size_t>(count, 5));
    notes.push_back(fmt::format(
        "{} of the {} problems of {} are in the training data ({} word for word): {}{}; "
        "`antisd data check --against` lists them",
        count, problems.size(), benchmarks[b].name, exact, fmt::join(found, ", "),
        count > found.size() ? ", ..." : ""));
  }
  return notes;
}

}  // namespace antisd::inline eval
