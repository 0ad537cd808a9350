
#include "core/error.h"
#include "data/problem.h"

namespace antisd::inline data {
namespace {

constexpr std::string_view kRemedy =
    "write {\"kind\": \"asserts\", \"code\"}, {\"kind\": \"functional\", \"code\", "
    "\"entry_point\"} "
    "or {\"kind\": \"stdio\", \"cases\": [{\"input\", \"output\"}]}; `antisd data convert` makes "
    "them from the known code data sets";

[[noreturn]] void throw_tests(const std::string& problem, const std::string& where) {
  throw InputError(problem, {.where = where, .remedy = std::string(kRemedy)});
}

void need_text(const Json& value, const char* name, const std::string& where) {
  const auto found = value.find(name);
  if (found == value.end() || !found->is_string()) {
    throw_tests(fmt::format("'tests' has no text '{}'", name), where);
  }
}

// A Parquet struct column has all members in every row; members of other kinds are null.
void drop_nulls(Json& value) {
  for (auto entry = value.begin(); entry != value.end();) {
    entry = entry->is_null() ? value.erase(entry) : std::next(entry);
  }
}

}  // namespace

Json checked_tests(Json tests, const std::string& where) {
  if (tests.is_string()) tests = parse_json(tests.get_ref<const std::string&>(), where + ": tests");
  if (!tests.is_object()) throw_tests("'tests' is not an object", where);
  drop_nulls(tests);
  need_text(tests, "kind", where);
  const std::string& kind = tests["kind"].get_ref<const std::string&>();
  if (kind == "asserts" || kind == "functional") {
    need_text(tests, "code", where);
    if (tests["code"].get_ref<const std::string&>().find_first_not_of(" \t\r\n") ==
        std::string::npos)
      throw_tests("'tests' has an empty 'code', which every program would pass", where);
    if (kind == "functional") need_text(tests, "entry_point", where);
    return tests;
  }
  if (kind != "stdio") throw_tests(fmt::format("'tests' of unknown kind '{}'", kind), where);
  const auto cases = tests.find("cases");
  if (cases == tests.end() || !cases->is_array() || cases->empty()) {
    throw_tests("'tests' has no list 'cases'", where);
  }
  for (const Json& one : *cases) {
    if (!one.is_object()) throw_tests("a case of 'tests' is not an object", where);
    need_text(one, "input", where);
    need_text(one, "output", where);
  }
  return tests;
}

}  // namespace antisd::inline data
