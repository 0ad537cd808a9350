#include "report/run_config_text.h"

#include <sstream>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "core/error.h"
#include "core/toml_text.h"

namespace antisd::inline report {
namespace {

constexpr std::size_t kMaxKeys = 2'000;

void flatten(const toml::table& table, const std::string& prefix, ConfigText& out) {
  for (const auto& [key, node] : table) {
    if (out.size() >= kMaxKeys) return;
    const std::string name = prefix + std::string(key.str());
    if (const toml::table* inner = node.as_table(); inner != nullptr && !inner->is_inline()) {
      flatten(*inner, name + ".", out);
      continue;
    }
    std::ostringstream text;
    if (const auto* number = node.as_floating_point()) {
      text << toml_value(number->get());  // shortest text that reads back the same
    } else {
      node.visit([&](const auto& value) { text << value; });
    }
    out[name] = text.str();
  }
}

}  // namespace

ConfigText flatten_toml(std::string_view text, const std::string& where) {
  ConfigText out;
  try {
    flatten(toml::parse(text), "", out);
  } catch (const toml::parse_error& error) {
    throw InputError(std::string(error.description()),
                     {.where = fmt::format("{}:{}", where, error.source().begin.line)});
  }
  return out;
}

std::string plain_value(const ConfigText& config, const std::string& key) {
  const auto found = config.find(key);
  if (found == config.end()) return "";
  const std::string& text = found->second;
  const bool quoted = text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
                      text.back() == text.front();
  return quoted ? text.substr(1, text.size() - 2) : text;
}

}  // namespace antisd::inline report
