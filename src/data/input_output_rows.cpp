// Tests that stand as JSON in a column: {"inputs", "outputs", "fn_name"?} of APPS, TACO and verl's
// code rows, and lists of asserts.
#include <algorithm>

#include "core/error.h"
#include "data/code_rows.h"

namespace antisd::inline data {
namespace {

[[noreturn]] void throw_bad_tests(const std::string& problem, const std::string& where) {
  throw InputError(problem, {.where = where, .remedy = "fetch the data set again"});
}

bool starts_as(std::string_view text, std::string_view beginning) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text.substr(first).starts_with(beginning);
}

bool is_assert(const Json& value) {
  return value.is_string() && starts_as(value.get_ref<const std::string&>(), "assert");
}

// A text, or its lines in a list, as TACO has some.
std::string case_text(const Json& value, const std::string& where) {
  if (value.is_string()) return value.get<std::string>();
  std::string text;
  if (!value.is_array()) throw_bad_tests("a test's input or output is not text", where);
  for (const Json& line : value) {
    if (!line.is_string()) throw_bad_tests("a test's input or output is not text", where);
    text += line.get_ref<const std::string&>() + "\n";
  }
  return text;
}

// Calls of a function: an input is the list of its arguments, an output its result, in APPS mostly
// in a list of one.
Json call_tests(const Json& inputs, const Json& outputs, const std::string& function,
                const std::string& where) {
  std::string code = R"(def check(candidate):
    import json

    def plain(value):
        return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value

    def agrees(given, expected):
        found = plain(candidate(*json.loads(given)))
        expected = json.loads(expected)
        return found == expected or [found] == expected

)";
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_array())
      throw_bad_tests("an input of a function is not a list of arguments", where);
    code += fmt::format("    assert agrees({}, {})\n", to_json_line(Json(to_json_line(inputs[i]))),
                        to_json_line(Json(to_json_line(outputs[i]))));
  }
  return {{"kind", "functional"}, {"code", code}, {"entry_point", function}};
}

}  // namespace

Json input_output_tests(Json given, const std::string& starter_code, const std::string& where) {
  if (given.is_string()) {
    const std::string text = given.get<std::string>();
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) return nullptr;
    given = parse_json(text, where);
  }
  if (given.is_null()) return nullptr;
  if (!given.is_object()) throw_bad_tests("the tests are not {\"inputs\", \"outputs\"}", where);
  const Json inputs = given.value("inputs", Json()), outputs = given.value("outputs", Json());
  if (!inputs.is_array() || !outputs.is_array() || inputs.size() != outputs.size()) {
    throw_bad_tests(
        fmt::format("the tests have {} inputs and {} outputs",
                    inputs.is_array() ? inputs.size() : 0, outputs.is_array() ? outputs.size() : 0),
        where);
  }
  if (inputs.empty()) return nullptr;
  if (const auto name = given.find("fn_name"); name != given.end() && !name->is_null()) {
    if (!name->is_string()) throw_bad_tests("'fn_name' is not text", where);
    const bool is_method = starter_code.find("class Solution") != std::string::npos;
    return call_tests(inputs, outputs, (is_method ? "Solution()." : "") + name->get<std::string>(),
                      where);
  }
  Json cases = Json::array();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    cases.push_back(
        {{"input", case_text(inputs[i], where)}, {"output", case_text(outputs[i], where)}});
  return {{"kind", "stdio"}, {"cases", std::move(cases)}};
}

bool holds_code_tests(const Json& truth) {
  if (truth.is_object()) return truth.contains("inputs") && truth.contains("outputs");
  if (truth.is_array())
    return !truth.empty() && (is_assert(truth[0]) || holds_code_tests(truth[0]));
  if (!truth.is_string()) return false;
  const std::string& text = truth.get_ref<const std::string&>();
  if (starts_as(text, "{")) return text.find("\"inputs\"") != std::string::npos;
  return starts_as(text, "[") && text.find("assert ") != std::string::npos;
}

Json code_tests_of_truth(Json truth, const std::string& where) {
  if (truth.is_array() && !truth.empty() && !is_assert(truth[0])) truth = Json(truth[0]);
  if (truth.is_string() && starts_as(truth.get_ref<const std::string&>(), "["))
    truth = parse_json(Json(truth).get_ref<const std::string&>(), where);
  if (!truth.is_array()) return input_output_tests(std::move(truth), "", where);
  std::string code;
  for (const Json& line : truth) {
    if (!is_assert(line)) throw_bad_tests("a test is not an assert", where);
    code += line.get_ref<const std::string&>() + "\n";
  }
  if (code.empty()) return nullptr;
  return {{"kind", "asserts"}, {"code", code}};
}

}  // namespace antisd::inline data
