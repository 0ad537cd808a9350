// `data show|check|convert`.
#include <iostream>
#include <memory>
#include <mutex>

#include <fmt/format.h>

#include "cli/command.h"
#include "core/error.h"
#include "core/note.h"
#include "core/thread_pool.h"
#include "data/checks.h"
#include "data/convert.h"
#include "hub/cache.h"
#include "io/jsonl.h"
#include "reward/code/grader.h"
#include "text/tokenizer/tokenizer.h"

namespace antisd::inline cli {
namespace {

struct DataCommandOptions {
  std::vector<std::string> files;
  std::string input, output = "-";
  std::vector<std::string> assignments;  // for the column map
  std::int64_t limit = 0;
  std::vector<std::string> against;
  std::string model;  // its tokenizer counts prompt tokens
  std::int64_t max_prompt_tokens = 2048;
  bool json = false;
  bool force = false;
  std::string rows = "auto";
  bool no_checks = false;
};

// The sandbox starts with the first solution to run. The time limit is generous: the load of the
// machine must not change what is recorded.
auto solution_counter(int threads) {
  struct State {
    std::once_flag once;
    std::optional<CodeGrader> grader;
  };
  return [state = std::make_shared<State>(), threads](const std::string& solution,
                                                      const Json& tests) -> std::optional<int> {
    std::call_once(state->once, [&] {
      state->grader.emplace(CodeGraderOptions{.timeout_s = 60, .cpu_s = 60, .workers = threads});
    });
    const bool fenced = solution.find("```") != std::string::npos;
    const CodeGrade grade = fenced ? state->grader->grade(solution, tests)
                                   : state->grader->grade_program(solution, tests);
    return grade.correct == true ? std::optional(grade.total) : std::nullopt;
  };
}

ColumnMap column_map(const std::vector<std::string>& assignments) {
  ColumnMap map;
  for (const std::string& assignment : assignments) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw InputError("not of the form ours=theirs", {.where = fmt::format("--map {}", assignment),
                                                       .remedy = "e.g. --map problem=question"});
    }
    map[assignment.substr(0, equals)] = assignment.substr(equals + 1);
  }
  return map;
}

void add_map_option(CLI::App& app, DataCommandOptions& options) {
  app.add_option("--map", options.assignments,
                 "our column=the file's; a dot selects a member: --map answer=reward_model.target");
}

void say(const std::vector<std::string>& notes) {
  for (const std::string& text : notes)
    note(text);
}

int show(const DataCommandOptions& options) {
  JsonlWriter writer(std::cout, "standard output");
  for (const std::string& file : options.files) {
    std::vector<std::string> notes;
    show_data(file,
              {.map = column_map(options.assignments), .limit = options.limit, .notes = &notes},
              [&](const Json& row) { writer.write(row); });
    say(notes);
  }
  writer.flush();
  return 0;
}

int check(const DataCommandOptions& options) {
  CheckOptions check_options{.map = column_map(options.assignments), .against = options.against};
  std::optional<Tokenizer> tokenizer;
  if (!options.model.empty()) {
    tokenizer = Tokenizer::load(model_folder(options.model));
    check_options.max_prompt_tokens = options.max_prompt_tokens;
    check_options.count_tokens = [&](const Problem& problem) {
      return static_cast<std::int64_t>(tokenizer->encode(prompt_text(problem)).size());
    };
  }
  const DataReport report = check_data(options.files, check_options);
  say(report.notes);
  std::cout << (options.json ? to_json_line(report.to_json()) + "\n" : report.text());
  return 0;
}

int convert(const DataCommandOptions& options) {
  using Rows = ConvertOptions::Rows;
  const int threads = available_threads();
  decltype(ConvertOptions::count_checks) counter;
  if (!options.no_checks) counter = solution_counter(threads);
  const ConvertResult result = convert_data(options.input, options.output,
                                            {.rows = options.rows == "code"   ? Rows::kCode
                                                     : options.rows == "keep" ? Rows::kKeep
                                                                              : Rows::kAuto,
                                             .force = options.force,
                                             .map = column_map(options.assignments),
                                             .count_checks = counter,
                                             .threads = threads});
  std::string more;
  if (result.without_tests > 0)
    more = fmt::format(" ({} left out: no tests)", result.without_tests);
  if (result.counted + result.failed_solutions > 0) {
    more += fmt::format("; {} solutions pass their tests (tests.checks), {} do not", result.counted,
                        result.failed_solutions);
  }
  say(result.notes);
  note(fmt::format("{}: {} of {} rows{}", options.output, result.rows_written, result.rows_read,
                   more));
  return 0;
}

}  // namespace

std::function<int()> add_data(CLI::App& app) {
  const auto options = std::make_shared<DataCommandOptions>();
  app.require_subcommand(1);

  CLI::App* show_app = app.add_subcommand("show", "rows as the trainer sees them, as JSONL");
  show_app
      ->add_option("FILE", options->files,
                   "JSONL, CSV, JSON array (each plain or .gz), Parquet, a data set's folder or "
                   "name (openai/gsm8k:main/test), or countdown:3")
      ->required();
  show_app->add_option("--limit", options->limit, "rows per file; 0 is all")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  add_map_option(*show_app, *options);

  CLI::App* check_app = app.add_subcommand(
      "check", "duplicates, empty answers, over-long prompts, overlap with benchmarks");
  check_app
      ->add_option("FILE", options->files,
                   "JSONL, CSV, JSON array (each plain or .gz), Parquet, a data set's folder or "
                   "name (openai/gsm8k:main/test), or countdown:3")
      ->required();
  check_app->add_option("--against", options->against,
                        "benchmark files whose problems should not be in FILE");
  check_app->add_option("--model", options->model,
                        "count prompt tokens with this model's tokenizer");
  check_app
      ->add_option("--max-prompt-tokens", options->max_prompt_tokens,
                   "with --model: longer prompts are reported")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  check_app->add_flag("--json", options->json, "the report as one JSON object");
  add_map_option(*check_app, *options);

  CLI::App* convert_app = app.add_subcommand(
      "convert", "between JSONL, CSV, JSON and Parquet; raw code rows become native ones");
  convert_app
      ->add_option("IN", options->input,
                   "JSONL, CSV, JSON array (each plain or .gz), Parquet, a data set's folder or "
                   "name (openai/gsm8k:main/test), or countdown:3")
      ->required();
  convert_app
      ->add_option("OUT,-o,--output", options->output,
                   "a .jsonl, .csv (or with .gz) or .parquet file; - is JSONL on standard output")
      ->capture_default_str();
  convert_app->add_flag("--force", options->force, "overwrite OUT if it exists");
  convert_app
      ->add_option("--rows", options->rows,
                   "auto: known code rows and verl's become native; code: all rows must be code "
                   "rows; keep: unchanged")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "code", "keep"}));
  convert_app->add_flag("--no-checks", options->no_checks,
                        "do not run the solutions of code rows to count the checks of their tests");
  add_map_option(*convert_app, *options);

  return [options, show_app, check_app] {
    if (show_app->parsed()) return show(*options);
    if (check_app->parsed()) return check(*options);
    return convert(*options);
  };
}

}  // namespace antisd::inline cli
