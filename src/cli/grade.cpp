// `grade math|code|countdown|python|command`.
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/finite_number.h"
#include "cli/rows.h"
#include "core/error.h"
#include "core/note.h"
#include "core/thread_pool.h"
#include "reward/code/grader.h"
#include "reward/countdown_grader.h"
#include "reward/grader.h"
#include "reward/math/grader.h"

namespace antisd::inline cli {
namespace {

struct GradeCommandOptions {
  RowStreamOptions rows;
  MathGraderOptions math;
  CountdownOptions countdown;
  CodeGraderOptions code;
  RewardConfig own;  // of a user's function or program
  int threads = available_threads();
};

Json row_of(const Verdict& verdict) {
  const Json correct = verdict.failed() ? Json() : Json(verdict.correct());
  return {{"correct", correct}, {"extracted", verdict.extracted}, {"reason", verdict.reason}};
}

// A gold answer is text; some data sets have numbers.
std::string answer_of(const Json& row) {
  const Json& answer = required_field(row, "answer");
  if (answer.is_string()) return answer.get<std::string>();
  if (answer.is_number()) return answer.dump();
  throw InputError(fmt::format("'answer' is {}", answer.type_name()),
                   {.remedy = "give a string or a number"});
}

int grade_math_rows(const GradeCommandOptions& options) {
  return run_rows(
      options.rows,
      [&](const Json& row) {
        return row_of(grade_math(answer_of(row), required_string(row, "response"), options.math));
      },
      options.threads);
}

int grade_countdown_rows(const GradeCommandOptions& options) {
  return run_rows(options.rows, [&](const Json& row) {
    return row_of(grade_countdown(read_countdown_problem(required_field(row, "problem")),
                                  required_string(row, "response"), options.countdown));
  });
}

int grade_code_rows(GradeCommandOptions options) {
  options.code.workers = options.threads;
  CodeGrader grader(options.code);
  return run_rows(
      options.rows,
      [&](const Json& row) -> Json {
        const Json& tests = required_field(row, "tests");  // a column of CSV holds them as text
        CodeGrade grade = grader.grade(
            required_string(row, "response"),
            tests.is_string() ? parse_json(tests.get_ref<const std::string&>(), "tests") : tests);
        return {{"correct", grade.correct ? Json(*grade.correct) : Json()},
                {"passed", grade.passed},
                {"total", grade.total},
                {"reason", std::move(grade.reason)},
                {"tests", std::move(grade.tests)}};
      },
      options.threads);
}

// A row of a data set with its response. Its columns are passed on as they are.
GradeRequest request_of(const Json& row, const std::string& stem) {
  GradeRequest request{.response = required_string(row, "response"), .row = row, .source = stem};
  request.row.erase("response");
  const auto text_of = [&](const char* column) -> std::string {
    if (!row.contains(column) || row[column].is_null()) return "";
    return row[column].is_string() ? row[column].get<std::string>() : to_json_line(row[column]);
  };
  request.answer = text_of("answer");
  request.id = text_of("id");
  request.problem = "";
  for (const char* column : {"prompt", "problem"}) {
    if (!row.contains(column)) continue;
    if (row[column].is_array())
      request.messages = row[column];
    else
      request.problem = row[column];
  }
  if (row.contains("source")) request.source = text_of("source");
  if (row.contains("completion_ids")) {
    request.ids = ids_of(row, "completion_ids");
    request.has_ids = true;
  }
  return request;
}

int grade_own_rows(GradeCommandOptions options) {
  options.own.workers = options.threads;
  const std::unique_ptr<Grader> grader = make_grader(options.own);
  const std::string stem =
      options.rows.file == "-" ? "" : std::filesystem::path(options.rows.file).stem().string();
  const int status = run_rows(
      options.rows,
      [&](const Json& row) -> Json {
        const Verdict verdict = grader->grade(request_of(row, stem));
        return {{"reward", verdict.failed() ? Json() : Json(*verdict.reward)},
                {"correct", verdict.failed() ? Json() : Json(verdict.correct())},
                {"reason", verdict.reason}};
      },
      options.threads);
  for (const std::string& text : grader->take_warnings())
    note("warning: " + text);
  return status;
}

}  // namespace

std::function<int()> add_grade(CLI::App& app) {
  const auto options = std::make_shared<GradeCommandOptions>();
  app.require_subcommand(1);
  const auto add = [&](const char* name, const char* help, const char* footer,
                       const std::function<void(CLI::App&)>& add_first = {}) {
    CLI::App* sub = app.add_subcommand(name, help);
    if (add_first) add_first(*sub);
    add_row_stream_options(*sub, options->rows);
    sub->add_option("--threads", options->threads, "rows graded at a time")
        ->capture_default_str()
        ->check(CLI::Range(1, 1024));
    sub->footer(footer);
    return sub;
  };
  CLI::App* math = add("math", "whether the answer in a response equals the known one",
                       "Row in: {\"answer\", \"response\"}. Row out: {\"correct\": "
                       "true|false|null, \"extracted\", \"reason\"}.");
  math->add_flag("--raw", options->math.raw, "the response is the answer itself");
  math->add_flag("--last-number", options->math.last_number,
                 "use the last number if there is no other answer");
  math->add_option("--relative-tolerance", options->math.relative_tolerance,
                   "accept numbers this close to the gold answer, relative to it; 0 is exact")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0))
      ->check(finite_number());

  CLI::App* code =
      add("code", "runs the last python block of a response against tests, in a sandbox",
          "Row in: {\"response\", \"tests\"}. Row out: {\"correct\", \"passed\", \"total\", "
          "\"reason\", \"tests\"}.");
  code->add_option("--timeout", options->code.timeout_s, "wall-clock seconds per program")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->check(finite_number());
  code->add_option("--memory", options->code.memory_mb, "MiB per process")
      ->capture_default_str()
      ->check(CLI::Range(16, 1 << 20));
  code->add_option("--sandbox", options->code.sandbox,
                   "auto; reduced: without namespaces; none: programs run unprotected")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "reduced", "none"}));

  CLI::App* countdown =
      add("countdown", "whether a search reaches the target with the given numbers",
          "Row in: {\"problem\", \"response\"}. Row out: as math.");
  countdown->add_flag("--at-most-once", options->countdown.at_most_once,
                      "a given number may be unused");

  constexpr const char* kOwnRows =
      "Row in: {\"problem\", \"answer\", \"response\", ...}; every column is passed on. Row out: "
      "{\"reward\": number|null, \"correct\", \"reason\"}.";
  CLI::App* python =
      add("python", "asks a reward function in Python, as TRL or verl call it", kOwnRows,
          [&](CLI::App& sub) {
            sub.add_option("FUNCTION", options->own.function, "FILE.py:FUNCTION")->required();
          });
  python->add_option("--python", options->own.python,
                     "the interpreter; by default what ANTISD_PYTHON names, or python3");
  python->add_option("--memory", options->own.memory_mb, "MiB per process; 0: no limit")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 30));
  CLI::App* command =
      add("command", "asks a reward program, which reads and writes lines", kOwnRows,
          [&](CLI::App& sub) {
            sub.add_option("COMMAND", options->own.command, "program and arguments")->required();
          });
  for (CLI::App* sub : {python, command}) {
    sub->add_option("--timeout", options->own.timeout_s, "wall-clock seconds per row")
        ->capture_default_str()
        ->check(CLI::PositiveNumber)
        ->check(finite_number());
    sub->add_option("--correct-at", options->own.correct_at,
                    "from this reward on, a response is correct")
        ->capture_default_str()
        ->check(finite_number());
  }

  return [options, math, code, python, command] {
    if (math->parsed()) return grade_math_rows(*options);
    if (code->parsed()) return grade_code_rows(*options);
    for (CLI::App* own : {python, command}) {
      if (!own->parsed()) continue;
      options->own.kind = own->get_name();
      return grade_own_rows(*options);
    }
    return grade_countdown_rows(*options);
  };
}

}  // namespace antisd::inline cli
