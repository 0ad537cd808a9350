#include "data/code_rows.h"

#include <initializer_list>

#include "core/error.h"
#include "data/asked_names.h"
#include "data/problem.h"

namespace antisd::inline data {
namespace {

struct Context {
  const Json& row;
  const std::string& where;
};

bool has(const Json& row, std::initializer_list<const char*> columns) {
  return std::all_of(columns.begin(), columns.end(),
                     [&](const char* column) { return row.contains(column); });
}

[[noreturn]] void throw_misfit(const std::string& problem, const Context& context) {
  throw InputError(problem, {.where = context.where, .remedy = "fetch the data set again"});
}

const std::string& text(const Context& context, const char* column) {
  const auto found = context.row.find(column);
  if (found == context.row.end() || !found->is_string()) {
    throw_misfit(fmt::format("'{}' is not text", column), context);
  }
  return found->get_ref<const std::string&>();
}

// A list of texts, joined by newlines.
std::string lines(const Context& context, const char* column) {
  const auto found = context.row.find(column);
  if (found == context.row.end() || found->is_null()) return "";
  if (!found->is_array()) throw_misfit(fmt::format("'{}' is not a list", column), context);
  std::string joined;
  for (const Json& line : *found) {
    if (!line.is_string()) throw_misfit(fmt::format("'{}' holds no text", column), context);
    joined += line.get_ref<const std::string&>() + "\n";
  }
  return joined;
}

// Null if there are none: such a row cannot be graded.
Json asserts(const std::string& code, const std::string& last) {
  if (last.empty()) return nullptr;
  return {{"kind", "asserts"}, {"code", code + last}};
}

Json functional(const std::string& code, const std::string& entry_point) {
  return {{"kind", "functional"}, {"code", code}, {"entry_point", entry_point}};
}

// One case of a program that reads standard input.
Json stdio_case(const Json& input, const Json& output, const Context& context) {
  if (!input.is_string() || !output.is_string()) {
    throw_misfit("a test's input or output is not text", context);
  }
  return {{"input", input}, {"output", output}};
}

Json stdio(Json cases) {
  if (cases.empty()) return nullptr;
  return {{"kind", "stdio"}, {"cases", std::move(cases)}};
}

Json stdio_list(const Json& list, const Context& context) {
  if (!list.is_array()) throw_misfit("the tests are not a list", context);
  Json cases = Json::array();
  for (const Json& one : list) {
    if (!one.is_object() || !has(one, {"input", "output"})) {
      throw_misfit("a test has no input and output", context);
    }
    cases.push_back(stdio_case(one["input"], one["output"], context));
  }
  return stdio(std::move(cases));
}

void replace_once(std::string& text, std::string_view old_part, std::string_view new_part) {
  if (const std::size_t found = text.find(old_part); found != std::string::npos) {
    text.replace(found, old_part.size(), new_part);
  }
}

Json human_eval_tests(const Context& context) {
  std::string code = text(context, "test");
  // HumanEval/32 of HumanEval+ unpacks the candidate's number instead of the input.
  replace_once(code, "assert _poly(*candidate(*inp), inp) <= 0.0001",
               "assert abs(_poly(*inp, candidate(*inp))) <= 0.0001");
  const std::string& entry_point = text(context, "entry_point");
  return functional(helpers_of_prompt(text(context, "prompt"), entry_point, code) + code,
                    entry_point);
}

Json mbpp_tests(const Context& context) {
  std::string code = lines(context, "test_imports");
  if (context.row.contains("test_setup_code") && !text(context, "test_setup_code").empty()) {
    code += text(context, "test_setup_code") + "\n";
  }
  if (!context.row.contains("test")) return asserts(code, lines(context, "test_list"));
  std::string test = text(context, "test");
  // Three rows of MBPP+ compute whether the outputs match but never assert it.
  if (test.find("assert ") == std::string::npos) {
    constexpr std::string_view kLast = "        exact_match = exp == (out is not None)\n";
    replace_once(test, kLast, std::string(kLast) + "    assert exact_match\n");
  }
  return asserts(code, test);
}

std::string mbpp_problem(const Context& context) {
  // The statement itself does not name the function.
  return text(context, context.row.contains("text") ? "text" : "prompt") +
         "\n\nThe code must pass these tests:\n\n```python\n" + lines(context, "test_list") + "```";
}

std::string with_starter_code(std::string problem, const Context& context) {
  if (!context.row.contains("starter_code")) return problem;
  const std::string& starter = text(context, "starter_code");
  if (starter.find_first_not_of(" \t\r\n") == std::string::npos) return problem;
  const std::size_t end = starter.find_last_not_of(" \t\r\n") + 1;
  return problem + "\n\nComplete this code:\n\n```python\n" + starter.substr(0, end) + "\n```";
}

// LeetCode problems in LiveCodeBench: each line of an input is an argument in JSON.
Json leetcode_tests(const Json& cases, const std::string& function, const Context& context) {
  std::string code = R"(def check(candidate):
    import json

    def plain(value):
        return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value

    def arguments(text):
        return [json.loads(line) for line in text.split("\n")]

)";
  for (const Json& one : cases) {
    const Json plain = stdio_case(one["input"], one["output"], context);
    code += fmt::format("    assert plain(candidate(*arguments({}))) == json.loads({})\n",
                        to_json_line(plain["input"]), to_json_line(plain["output"]));
  }
  return functional(code, "Solution()." + function);
}

Json live_code_bench_tests(const Context& context) {
  const Json cases = parse_json(text(context, "public_test_cases"), context.where);
  const Json stdio_tests = stdio_list(cases, context);
  if (stdio_tests.is_null()) return nullptr;
  if (cases[0].value("testtype", Json("stdin")) != "functional") return stdio_tests;
  const Json metadata = parse_json(text(context, "metadata"), context.where);
  const auto function = metadata.is_object() ? metadata.find("func_name") : metadata.end();
  if (function == metadata.end() || !function->is_string()) {
    throw_misfit("'metadata' does not name a function", context);
  }
  return leetcode_tests(cases, function->get<std::string>(), context);
}

// "...
//
// check(Solution().twoSum)" -> the code without its last line, and the call.
Json called_check(const std::string& code, const Context& context) {
  constexpr std::string_view kCall = "\ncheck(";
  const std::size_t call = code.rfind(kCall);
  const std::size_t end = code.find_last_not_of(" \t\r\n");
  if (call == std::string::npos || code[end] != ')' || end < call + kCall.size()) {
    throw_misfit("the functional test does not end with a call of check", context);
  }
  const std::size_t start = call + kCall.size();
  return functional(code.substr(0, call + 1), code.substr(start, end - start));
}

Json rllm_tests(const Context& context) {
  Json tests = context.row["tests"];
  if (tests.is_string()) tests = parse_json(tests.get_ref<const std::string&>(), context.where);
  if (!tests.is_object()) return stdio_list(tests, context);
  if (tests.contains("functional")) {
    const Json& code = tests["functional"];
    if (!code.is_string()) throw_misfit("the functional test is not text", context);
    return called_check(code.get<std::string>(), context);
  }
  const Json inputs = tests.value("inputs", Json()), outputs = tests.value("outputs", Json());
  if (!inputs.is_array() || !outputs.is_array() || inputs.size() != outputs.size()) {
    throw_misfit("'tests' has another number of outputs than inputs", context);
  }
  Json cases = Json::array();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    cases.push_back(stdio_case(inputs[i], outputs[i], context));
  }
  return stdio(std::move(cases));
}

enum class RawKind {
  kHumanEval,
  kEvalPlus,
  kMbpp,
  kLiveCodeBench,
  kStatements,
  kRllm,
  kAceCode,
  kApps,
  kTruth,  // verl's and Dolci-RLZero's: the ground truth is tests
  kNone
};

// The ground truth of a row whose prompt is a chat or a text; null if it has none.
const Json* truth_of(const Json& row) {
  if (is_verl_row(row)) return &row["reward_model"]["ground_truth"];
  const auto truth = row.find("ground_truth");
  const bool asked = row.contains("messages") || row.contains("prompt");
  return truth != row.end() && asked ? &*truth : nullptr;
}

bool has_rllm_tests(const Json& row) {
  const auto tests = row.find("tests");
  if (tests == row.end()) return false;
  if (tests->is_object()) {
    return has(*tests, {"functional"}) || has(*tests, {"inputs", "outputs"});
  }
  if (tests->is_string()) {  // DeepCoder's form; native tests in Parquet have a "kind"
    const std::string& text = tests->get_ref<const std::string&>();
    return text.starts_with("[") || (text.starts_with("{") && text.find("\"kind\"") == text.npos);
  }
  return tests->is_array() && !tests->empty() && (*tests)[0].is_object() &&
         has((*tests)[0], {"input", "output"});
}

RawKind raw_kind_of(const Json& row) {
  if (has(row, {"task_id", "prompt", "entry_point", "canonical_solution"})) {
    if (has(row, {"base_input", "plus_input"})) return RawKind::kEvalPlus;
    if (row.contains("test")) return RawKind::kHumanEval;
  }
  if (has(row, {"task_id", "code", "test_list"}) &&
      (row.contains("text") || row.contains("prompt"))) {
    return RawKind::kMbpp;
  }
  if (has(row, {"question_content", "public_test_cases"})) return RawKind::kLiveCodeBench;
  if (has(row, {"problem", "sample_tests", "starter_code"})) return RawKind::kStatements;
  if (has(row, {"question", "test_cases"})) return RawKind::kAceCode;
  if (row.contains("problem") && has_rllm_tests(row)) return RawKind::kRllm;
  if (has(row, {"question", "input_output"})) return RawKind::kApps;
  if (const Json* truth = truth_of(row); truth != nullptr && holds_code_tests(*truth))
    return RawKind::kTruth;
  return RawKind::kNone;
}

struct Parts {
  Json problem;  // text, or a list of chat messages
  std::string solution;
  Json tests;
};

// The first of APPS's and TACO's solutions, which are a list or JSON text of one.
std::string first_solution(const Context& context) {
  const auto found = context.row.find("solutions");
  if (found == context.row.end() || found->is_null()) return "";
  Json list = *found;
  if (list.is_string()) {
    const std::string text = list.get<std::string>();
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) return "";
    list = parse_json(text, context.where + ": solutions");
  }
  return list.is_array() && !list.empty() && list[0].is_string() ? list[0].get<std::string>() : "";
}

Parts apps_parts(const Context& context) {
  const auto starter = context.row.find("starter_code");
  const bool given = starter != context.row.end() && starter->is_string();
  const std::string& question = text(context, "question");
  return {given ? with_starter_code(question, context) : question, first_solution(context),
          input_output_tests(context.row["input_output"], given ? starter->get<std::string>() : "",
                             context.where + ": input_output")};
}

Parts truth_parts(const Context& context) {
  const char* column = context.row.contains("messages") ? "messages" : "prompt";
  const auto asked = context.row.find(column);
  if (asked == context.row.end() || !(asked->is_string() || asked->is_array()))
    throw_misfit(fmt::format("'{}' is neither text nor a list of messages", column), context);
  return {*asked, "",
          code_tests_of_truth(*truth_of(context.row), context.where + ": ground_truth")};
}

Parts convert(const Context& context, RawKind kind) {
  switch (kind) {
    case RawKind::kHumanEval:
    case RawKind::kEvalPlus:
      return {text(context, "prompt"),
              text(context, "prompt") + text(context, "canonical_solution"),
              kind == RawKind::kHumanEval ? human_eval_tests(context)
                                          : evalplus_tests(context.row, context.where)};
    case RawKind::kMbpp:
      return {mbpp_problem(context), text(context, "code"), mbpp_tests(context)};
    case RawKind::kLiveCodeBench:
      return {with_starter_code(text(context, "question_content"), context), "",
              live_code_bench_tests(context)};
    case RawKind::kStatements:
      return {with_starter_code(text(context, "problem"), context), "",
              stdio_list(context.row["sample_tests"], context)};
    case RawKind::kRllm: {
      const auto solution = context.row.find("solutions");
      const bool given = solution != context.row.end() && solution->is_string();
      return {text(context, "problem"), given ? solution->get<std::string>() : "",
              rllm_tests(context)};
    }
    case RawKind::kAceCode:
      return {text(context, "question"), "", asserts("", lines(context, "test_cases"))};
    case RawKind::kApps:
      return apps_parts(context);
    case RawKind::kTruth:
      return truth_parts(context);
    case RawKind::kNone:
      break;
  }
  throw InputError(
      "not a row of a known code data set; it has: " + list_columns(context.row),
      {.where = context.where, .remedy = "write native rows: {\"id\", \"problem\", \"tests\"}"});
}

std::string id_of(const Json& row, RawKind kind, const std::string& fallback) {
  for (const char* column : {"id", "task_id", "question_id", "problem_id"}) {
    const auto id = row.find(column);
    if (id == row.end()) continue;
    if (id->is_string()) return id->get<std::string>();
    // MBPP's ids are plain numbers; EvalPlus calls the same problem Mbpp/2.
    if (id->is_number_integer()) return (kind == RawKind::kMbpp ? "Mbpp/" : "") + id->dump();
  }
  return fallback;
}

}  // namespace

bool is_raw_code_row(const Json& row) {
  return raw_kind_of(row) != RawKind::kNone;
}

std::optional<Json> native_code_row(const Json& row, const std::string& where,
                                    const std::string& source, const std::string& fallback_id) {
  const RawKind kind = raw_kind_of(row);
  Parts parts = convert({row, where}, kind);
  if (parts.tests.is_null()) return std::nullopt;
  Json native = {{"id", id_of(row, kind, fallback_id)}};
  const char* column = parts.problem.is_string() ? "problem" : "prompt";
  native[column] = std::move(parts.problem);
  if (parts.tests["kind"] == "asserts" && !parts.solution.empty()) {
    Json names = asked_names(parts.solution, parts.tests["code"].get_ref<const std::string&>());
    if (!names.empty()) parts.tests["names"] = std::move(names);
  }
  if (!parts.solution.empty()) native["solution"] = std::move(parts.solution);
  native["tests"] = std::move(parts.tests);
  const auto own_source = row.find("source");
  native["source"] =
      own_source != row.end() && own_source->is_string() ? *own_source : Json(source);
  return native;
}

}  // namespace antisd::inline data
