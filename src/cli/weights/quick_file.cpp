#include "cli/weights/quick_file.h"

#include <algorithm>

#include <fmt/format.h>

#include "config/run_config.h"

namespace antisd::inline cli {
namespace {

constexpr std::size_t kColumns = 100;

// "# " lines of at most kColumns.
std::string comment(const std::string& text) {
  std::string lines, line = "#";
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (line.size() + 1 + word.size() > kColumns) {
      lines += line + "\n";
      line = "#";
    }
    line += " " + word;
    begin = end + 1;
  }
  return lines + line + "\n";
}

}  // namespace

std::string quick_toml(const std::string& heading, const std::vector<QuickSetting>& settings) {
  std::vector<std::string> sections;
  const auto section_of = [](const QuickSetting& setting) {
    return setting.key.substr(0, setting.key.rfind('.'));
  };
  for (const QuickSetting& setting : settings)
    if (std::ranges::find(sections, section_of(setting)) == sections.end())
      sections.push_back(section_of(setting));
  std::string text = comment(heading);
  for (const std::string& section : sections) {
    text += fmt::format("\n[{}]\n", section);
    for (const QuickSetting& setting : settings) {
      if (section_of(setting) != section) continue;
      text += comment(setting.why);
      text +=
          fmt::format("{} = {}\n", setting.key.substr(setting.key.rfind('.') + 1), setting.value);
    }
  }
  return text;
}

std::vector<QuickSetting> given_settings(const std::vector<std::string>& assignments) {
  RunConfig config;
  for (const std::string& assignment : assignments)
    config.options().assign(assignment);
  std::vector<QuickSetting> settings;
  for (const Option& option : config.options().options())
    if (option.was_set())
      settings.push_back({option.key(), option.value_toml(), "Given on the command line."});
  return settings;
}

}  // namespace antisd::inline cli
