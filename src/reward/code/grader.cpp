#include "reward/code/grader.h"

#include <chrono>

#include <signal.h>
#include <sys/wait.h>

#include "core/error.h"
#include "core/utf8.h"
#include "reward/code/compare.h"
#include "reward/code/extract.h"
#include "reward/code/run.h"

namespace antisd::inline reward {
namespace {

constexpr int kMaxTimeouts = 2;        // stdio: after this many the remaining cases are not run
constexpr double kAllCasesFactor = 6;  // limit for all stdio cases together, times timeout_s
constexpr int kMaxCases = 100'000;

[[noreturn]] void refuse(const std::string& problem) {
  throw InputError(problem, {.where = "tests",
                             .remedy = "use {\"kind\":\"asserts\",\"code\"}, "
                                       "{\"kind\":\"functional\",\"code\",\"entry_point\"} or "
                                       "{\"kind\":\"stdio\",\"cases\":[{\"input\",\"output\"}]}"});
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string())
    refuse(fmt::format("\"{}\" is missing or not a text", key));
  return found->get<std::string>();
}

bool is_entry_point(std::string_view path) {
  bool start = true;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const auto c = static_cast<unsigned char>(path[i]);
    const bool letter = std::isalpha(c) || c == '_' || c >= 0x80;
    if (start ? !letter
              : !(letter || std::isdigit(c) || c == '.' || path.substr(i, 2) == "()" || c == ')'))
      return false;
    start = c == '.';
  }
  return !path.empty() && !start;
}

// {"f": "function", "Stack": "class"}: what the row asks for, and how many checks a solution
// reaches.
void add_expectations(const Json& tests, Json& job) {
  if (const auto names = tests.find("names"); names != tests.end()) {
    const bool good =
        names->is_object() && std::all_of(names->begin(), names->end(), [](const Json& kind) {
          return kind == "function" || kind == "class";
        });
    if (!good) refuse("\"names\" is not like {\"f\": \"function\", \"Stack\": \"class\"}");
    job["names"] = *names;
  }
  if (const auto checks = tests.find("checks"); checks != tests.end()) {
    if (!checks->is_number_integer() || *checks < 1 || *checks > kMaxCases)
      refuse("\"checks\" is not a number of checks");
    job["checks"] = *checks;
  }
}

Json checked_tests(const Json& tests) {
  if (!tests.is_object()) refuse("the tests are not an object");
  const std::string kind = text_of(tests, "kind");
  Json job = {{"kind", kind}};
  if (kind == "asserts" || kind == "functional") {
    job["code"] = text_of(tests, "code");
    add_expectations(tests, job);
    if (kind == "asserts") return job;
    job["entry_point"] = text_of(tests, "entry_point");
    if (!is_entry_point(job["entry_point"].get<std::string>()))
      refuse("\"entry_point\" is not a name like f or Solution().f");
    return job;
  }
  if (kind != "stdio") refuse("unknown kind \"" + kind + "\"");
  const auto cases = tests.find("cases");
  if (cases == tests.end() || !cases->is_array() || cases->empty() ||
      cases->size() > static_cast<std::size_t>(kMaxCases))
    refuse("\"cases\" is missing, empty or too long");
  for (const Json& one : *cases) {
    if (!one.is_object()) refuse("a case is not an object");
    text_of(one, "input");
    text_of(one, "output");
  }
  job["cases"] = *cases;
  return job;
}

void add_test(CodeGrade& grade, bool passed, const std::string& reason) {
  Json test = {{"passed", passed}};
  if (!reason.empty()) test["reason"] = replace_invalid_utf8(reason);
  if (!passed && grade.reason.empty()) grade.reason = reason;
  grade.tests.push_back(std::move(test));
  grade.passed += passed;
  ++grade.total;
}

std::string last_line(std::string_view text) {
  while (!text.empty() && text.back() == '\n')
    text.remove_suffix(1);
  const std::size_t line = text.rfind('\n');
  return std::string(text.substr(line == std::string_view::npos ? 0 : line + 1).substr(0, 300));
}

// The kernel's limit counts whole ticks, which on a busy or virtual machine run ahead of the exact
// time that is reported later; half of it distinguishes this from a program that killed itself
// early.
bool out_of_processor_time(int status, double used_s, const CodeGraderOptions& options) {
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && used_s >= 0.5 * options.cpu_s;
}

std::string reason_of(const MainRun& run, const std::string& expected,
                      const CodeGraderOptions& options) {
  if (run.too_much_output) return "output limit exceeded";
  if (run.timed_out || out_of_processor_time(run.status, run.cpu_s, options))
    return "time limit exceeded";
  if (run.status != 0) {
    const std::string line = last_line(run.errors);
    return line.empty() ? "the program ended with " + describe_status(run.status) : line;
  }
  return describe_difference(run.output, expected);
}

void grade_cases(Zygote& zygote, std::string_view source, const Json& cases,
                 const CodeGraderOptions& options, CodeGrade& grade) {
  const auto begin = std::chrono::steady_clock::now();
  int timeouts = 0;
  for (const Json& one : cases) {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    if (timeouts >= kMaxTimeouts || spent.count() > kAllCasesFactor * options.timeout_s) {
      add_test(grade, false, "not run: time limit exceeded before");
      continue;
    }
    const std::string expected = one["output"].get<std::string>();
    const MainRun run = run_main(zygote, source, one["input"].get<std::string>(), options);
    const std::string reason = reason_of(run, expected, options);
    timeouts += reason == "time limit exceeded";
    add_test(grade, reason.empty(), reason);
  }
  grade.correct = grade.passed == grade.total;
}

void grade_calls(Zygote& zygote, std::string_view source, const Json& job,
                 const CodeGraderOptions& options, CodeGrade& grade) {
  const TestRun run = run_tests(zygote, source, job, options);
  if (!run.broken.empty()) {
    grade.reason = run.broken;
    return;
  }
  const bool program_out_of_time =
      run.timed_out || out_of_processor_time(run.program_status, run.cpu_s, options);
  for (const TestRun::Result& result : run.results) {
    const bool gone = program_out_of_time && result.reason == "the program has ended";
    add_test(grade, result.passed, gone ? "time limit exceeded" : result.reason);
  }
  if (!run.complete) {
    // The tests' own process died: from the limits, which a program can cause, or from a bug of
    // ours.
    if (!run.timed_out && !WIFSIGNALED(run.tests_status)) {
      grade = {};
      grade.reason = "the tests' process ended early with " + describe_status(run.tests_status);
      return;
    }
    add_test(grade, false,
             run.timed_out ? "time limit exceeded" : "the tests were stopped by a limit");
  }
  // A program that makes the tests skip checks gets no credit for the skipped ones.
  for (int missing = job.value("checks", 0) - grade.total; missing > 0; --missing)
    add_test(grade, false, "not reached, unlike with a known solution");
  grade.correct = grade.passed == grade.total && !run.timed_out;
  if (run.timed_out) grade.reason = "time limit exceeded";
}

bool names_numpy(std::string_view source, const Json& job) {
  if (source.find("numpy") != std::string_view::npos) return true;
  if (!job.contains("code")) return false;
  const std::string& code = job["code"].get_ref<const std::string&>();
  return code.find("numpy") != std::string::npos || code.find("np.") != std::string::npos;
}

}  // namespace

CodeGrader::CodeGrader(const CodeGraderOptions& options) : pool_(options) {}

CodeGrade CodeGrader::grade(std::string_view response, const Json& tests) {
  const std::optional<std::string> source = extract_python(response);
  if (source) return grade_program(*source, tests);
  const Json job = checked_tests(tests);
  CodeGrade grade;
  grade.correct = false;
  grade.total =
      job.contains("cases") ? static_cast<int>(job["cases"].size()) : job.value("checks", 1);
  grade.reason = "no python block in the response";
  for (int i = 0; i < grade.total; ++i)
    grade.tests.push_back({{"passed", false}, {"reason", grade.reason}});
  return grade;
}

CodeGrade CodeGrader::grade_program(std::string_view source, const Json& tests) {
  const Json job = checked_tests(tests);
  CodeGrade grade;
  try {
    InterpreterPool::Lease lease = pool_.acquire(names_numpy(source, job));
    try {
      if (job.contains("cases"))
        grade_cases(*lease, source, job["cases"], pool_.options(), grade);
      else
        grade_calls(*lease, source, job, pool_.options(), grade);
    } catch (...) {
      lease.discard();
      throw;
    }
  } catch (const Error& error) {
    grade = {};
    grade.reason = error.message();
  }
  return grade;
}

}  // namespace antisd::inline reward
