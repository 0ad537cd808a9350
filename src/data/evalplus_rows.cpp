#include <array>

#include "core/error.h"
#include "data/code_rows.h"

namespace antisd::inline data {
namespace {

// Comparisons other than equality. EvalPlus keeps the same lists in its evaluator, not in the data.
constexpr std::array<std::string_view, 8> kSetTasks = {
    "similar_elements", "find_char_long",     "common_in_nested_lists", "extract_singly",
    "larg_nnum",        "intersection_array", "find_dissimilar",        "Diff"};
constexpr std::array<std::string_view, 3> kTruthTasks = {"check_str", "text_match_three",
                                                         "text_starta_endb"};

constexpr std::string_view kEqual = R"py(
    def agree(actual, expected):
        tolerance = atol
        if tolerance == 0 and floats(expected):
            tolerance = 1e-6
        return actual == expected or (tolerance != 0 and near(actual, expected, tolerance))
)py";
constexpr std::string_view kSameSet = R"py(
    def agree(actual, expected):
        return set(actual) == set(expected)
)py";
// A match object counts as true, None as false.
constexpr std::string_view kSameTruth = R"py(
    def agree(actual, expected):
        expected = expected if isinstance(expected, bool) else expected is not None
        return (actual if isinstance(actual, bool) else actual is not None) == expected
)py";

// JSON has only lists. The literal arguments in the row's own assertions show which lists of the
// inputs were tuples or sets in Python and which keys were numbers: values take the form of the
// examples at the same place, or else anywhere in the same container; a list nested deeper than any
// example takes the form of its parent. Complex numbers are stored as text.
constexpr std::string_view kLikeExamples = R"py(
    def like(value, examples, form=list):
        if isinstance(value, list):
            forms = [e for e in examples if isinstance(e, (list, tuple, set, frozenset))]
            form = type(forms[0]) if forms else form
            inner = form if form in (list, tuple) else tuple
            same = [e for e in forms if isinstance(e, (list, tuple)) and len(e) == len(value)]
            pool = [item for e in forms for item in e]
            return form(like(item, [e[i] for e in same] + pool, inner)
                        for i, item in enumerate(value))
        if isinstance(value, dict):
            forms = [e for e in examples if isinstance(e, dict)]
            number = any(isinstance(key, int) for e in forms for key in e)
            pool = [item for e in forms for item in e.values()]
            return {int(key) if number and key.lstrip("-").isdigit() else key: like(item, pool)
                    for key, item in value.items()}
        return value

    import ast
    calls = []
    for node in ast.walk(ast.parse(assertions)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name:
            try:
                calls.append([ast.literal_eval(argument) for argument in node.args])
            except ValueError:
                pass
    inputs = [[like(value, [call[i] for call in calls if i < len(call)])
               for i, value in enumerate(arguments)] for arguments in inputs]
    texts = [value for arguments in inputs for value in arguments if isinstance(value, str)]
    if any(text.rstrip(")").endswith("j") for text in texts) and all(
            isinstance(value, (int, float, complex)) for call in calls for value in call):
        inputs = [[complex(value) if isinstance(value, str) else value for value in arguments]
                  for arguments in inputs]
)py";

bool contains(const auto& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A JSON string with only ASCII escapes is a Python literal of the same text.
std::string python_literal(const std::string& text) {
  return to_json_line(Json(text));
}

const std::string& text_of(const Json& row, const char* name, const std::string& where) {
  const auto found = row.find(name);
  if (found != row.end() && found->is_string()) return found->get_ref<const std::string&>();
  throw InputError(fmt::format("'{}' is not text", name),
                   {.where = where, .remedy = "EvalPlus's own rows are read from JSONL files"});
}

std::string inputs_literal(const Json& row, const char* name, const std::string& where) {
  // A row without further inputs has {}.
  const std::string& text = text_of(row, name, where);
  return text == "{}" ? python_literal("[]") : python_literal(text);
}

}  // namespace

Json evalplus_tests(const Json& row, const std::string& where) {
  const std::string& name = text_of(row, "entry_point", where);
  const bool mbpp = text_of(row, "task_id", where).starts_with("Mbpp/");
  const auto atol = row.find("atol");
  if (atol == row.end() || !atol->is_number()) {
    throw InputError("'atol' is not a number", {.where = where, .remedy = "fetch the file again"});
  }
  std::string code = "def check(candidate):\n    import copy, json\n";
  code += fmt::format("    name = {}\n    atol = {}\n", python_literal(name), atol->dump());
  code += fmt::format("    inputs = json.loads({}) + json.loads({})\n",
                      inputs_literal(row, "base_input", where),
                      inputs_literal(row, "plus_input", where));
  code += fmt::format(
      "    reference = {{}}\n    exec({}, reference)\n    reference = reference[name]\n",
      python_literal(text_of(row, "prompt", where) + text_of(row, "canonical_solution", where)));
  if (mbpp) {
    code += fmt::format("    assertions = {}\n", python_literal(text_of(row, "assertion", where)));
    code += kLikeExamples;
  }
  if (!mbpp && name == "find_zero") {
    // Any root is accepted; the tolerance applies to the polynomial's value.
    code += R"py(
    for arguments in inputs:
        root = candidate(*copy.deepcopy(arguments))
        assert abs(sum(c * root ** i for i, c in enumerate(arguments[0]))) <= atol
)py";
  } else {
    code += R"py(
    def floats(value):
        if isinstance(value, (list, tuple)):
            return all(isinstance(item, float) for item in value)
        return isinstance(value, float)

    def near(actual, expected, tolerance):
        if isinstance(expected, (list, tuple)):
            return len(actual) == len(expected) and all(
                near(a, e, tolerance) for a, e in zip(actual, expected))
        return actual == expected or abs(actual - expected) <= tolerance + 1e-7 * abs(expected)
)py";
    code += mbpp && contains(kSetTasks, name)     ? kSameSet
            : mbpp && contains(kTruthTasks, name) ? kSameTruth
                                                  : kEqual;
    code += R"py(
    for arguments in inputs:
        expected = reference(*copy.deepcopy(arguments))
        assert agree(candidate(*copy.deepcopy(arguments)), expected)
)py";
  }
  return {{"kind", "functional"}, {"code", code}, {"entry_point", name}};
}

}  // namespace antisd::inline data
