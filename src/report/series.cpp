#include "report/series.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace antisd::inline report {
namespace {

constexpr const char* kSeed = "train.seed";

std::string key_of_series(const ConfigText& config) {
  std::string key;
  for (const auto& [name, value] : config) {
    if (name == kSeed || name.starts_with("record.") || name.starts_with("checkpoint.")) continue;
    key += name + "=" + value + "\n";
  }
  return key;
}

// The names' common prefix, without the words that lead to a seed: "runs/grpo-seed".
std::string common_name(std::span<const NamedConfig> all, const std::vector<std::size_t>& runs) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string name = all[runs[0]].name;
  bool inside_number = false;  // seeds 10 and 11: the prefix ends inside a number
  for (const std::size_t run : runs) {
    const std::string& other = all[run].name;
    const auto [end, rest] = std::mismatch(name.begin(), name.end(), other.begin(), other.end());
    inside_number = inside_number || (end != name.end() && is_digit(*end)) ||
                    (rest != other.end() && is_digit(*rest));
    name.erase(end, name.end());
  }
  while (inside_number && !name.empty() && is_digit(name.back()))
    name.pop_back();
  const auto trim = [&] {
    while (!name.empty() && std::string_view("-_/. =0").find(name.back()) != std::string_view::npos)
      name.pop_back();
  };
  trim();
  for (const std::string_view word : {"seed", "-s", "_s"}) {
    if (name.ends_with(word)) name.erase(name.size() - word.size());
  }
  trim();
  return name.empty() ? all[runs[0]].method : name;
}

}  // namespace

std::vector<Series> group_by_seed(std::span<const NamedConfig> runs) {
  struct Group {
    std::string key;
    std::set<std::string> seeds;
    std::vector<std::size_t> runs;
  };
  std::vector<Group> groups;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    const ConfigText& config = runs[run].config;
    const std::string key = config.empty() ? "" : key_of_series(config);
    const std::string seed = plain_value(config, kSeed);
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return !key.empty() && group.key == key && !group.seeds.contains(seed);
    });
    if (found == groups.end()) {
      groups.push_back({key, {seed}, {run}});
    } else {
      found->seeds.insert(seed);
      found->runs.push_back(run);
    }
  }
  std::vector<Series> series;
  for (const Group& group : groups) {
    std::string name = runs[group.runs[0]].name;
    if (group.runs.size() > 1)
      name = fmt::format("{} ({} seeds)", common_name(runs, group.runs), group.runs.size());
    series.push_back({name, group.runs});
  }
  return series;
}

std::vector<ConfigDifference> config_differences(std::span<const NamedConfig> runs) {
  std::set<std::string> keys;
  for (const NamedConfig& run : runs) {
    for (const auto& [key, value] : run.config)
      keys.insert(key);
  }
  keys.erase("record.dir");
  std::vector<ConfigDifference> differences;
  for (const std::string& key : keys) {
    ConfigDifference difference{key, {}};
    std::set<std::string> distinct;
    for (const NamedConfig& run : runs) {
      const auto found = run.config.find(key);
      difference.values.push_back(found == run.config.end() ? "" : found->second);
      if (!run.config.empty()) distinct.insert(difference.values.back());
    }
    if (distinct.size() > 1) differences.push_back(std::move(difference));
  }
  return differences;
}

}  // namespace antisd::inline report
