#include "data/asked_names.h"

#include <algorithm>
#include <cctype>

namespace antisd::inline data {
namespace {

bool is_name_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) || c == '_' || byte >= 0x80;
}

std::string_view leading_name(std::string_view text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_name_byte);
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

bool uses_name(std::string_view code, std::string_view name) {
  for (std::size_t at = 0; (at = code.find(name, at)) != std::string_view::npos; ++at) {
    const std::size_t end = at + name.size();
    const bool starts = at == 0 || !is_name_byte(code[at - 1]);
    if (starts && (end == code.size() || !is_name_byte(code[end]))) return true;
  }
  return false;
}

struct Definition {
  std::string_view name;
  const char* kind = "function";
};

// def f(...), class F, f = lambda ...: with nothing before it in the line.
Definition definition_in(std::string_view line) {
  for (const auto& [keyword, kind] :
       {std::pair("def ", "function"), {"async def ", "function"}, {"class ", "class"}}) {
    if (line.starts_with(keyword)) {
      line.remove_prefix(std::string_view(keyword).size());
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
      return {leading_name(line), kind};
    }
  }
  const std::string_view name = leading_name(line);
  line.remove_prefix(name.size());
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const bool assigned = line.starts_with("=") && !line.starts_with("==");
  return {assigned ? name : std::string_view()};
}

}  // namespace

Json asked_names(std::string_view solution, std::string_view tests) {
  Json names = Json::object();
  for (std::size_t start = 0; start < solution.size();) {
    const std::size_t end = std::min(solution.find('\n', start), solution.size());
    const Definition found = definition_in(solution.substr(start, end - start));
    if (!found.name.empty() && uses_name(tests, found.name))
      names[std::string(found.name)] = found.kind;
    start = end + 1;
  }
  return names;
}

std::string helpers_of_prompt(std::string_view prompt, std::string_view entry_point,
                              std::string_view tests) {
  const std::string asked = "\ndef " + std::string(entry_point) + "(";
  const std::size_t at = prompt.find(asked);
  if (at == std::string_view::npos) return "";
  const std::string_view before = prompt.substr(0, at + 1);
  return asked_names(before, tests).empty() ? "" : std::string(before) + "\n";
}

}  // namespace antisd::inline data
