#include "data/data_set.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"
#include "data/data_card.h"
#include "io/atomic_file.h"

namespace antisd::inline data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultConfig = "default";
constexpr const char* kDefaultSplit = "train";
constexpr std::size_t kMaxFiles = 100'000;
constexpr std::int64_t kMaxCardBytes = 16 << 20;

struct SplitWord {
  const char *word, *split;
};
constexpr std::array kSplitWords = {SplitWord{"train", "train"},
                                    SplitWord{"training", "train"},
                                    SplitWord{"test", "test"},
                                    SplitWord{"testing", "test"},
                                    SplitWord{"eval", "test"},
                                    SplitWord{"evaluation", "test"},
                                    SplitWord{"validation", "validation"},
                                    SplitWord{"valid", "validation"},
                                    SplitWord{"val", "validation"},
                                    SplitWord{"dev", "validation"}};

// The split that a word of the name tells, e.g. of "gsm8k_test"; empty: none.
std::string split_in(const std::string& name) {
  std::size_t start = 0;
  while (start < name.size()) {
    const std::size_t end = std::min(name.find_first_of("-_. ", start), name.size());
    for (const SplitWord& known : kSplitWords)
      if (name.compare(start, end - start, known.word) == 0) return known.split;
    start = end + 1;
  }
  return "";
}

// "train_sft" of "train_sft-00000-of-00002"; empty if the name has no such ending.
std::string split_before_shard(const std::string& stem) {
  constexpr std::string_view kShard = "-00000-of-00000";
  if (stem.size() <= kShard.size()) return "";
  const std::string_view ending = std::string_view(stem).substr(stem.size() - kShard.size());
  for (std::size_t i = 0; i < kShard.size(); ++i) {
    const bool fits =
        kShard[i] == '0' ? ending[i] >= '0' && ending[i] <= '9' : ending[i] == kShard[i];
    if (!fits) return "";
  }
  return stem.substr(0, stem.size() - kShard.size());
}

// From the path below the data set's folder.
DataSplit split_of_path(const fs::path& path) {
  std::vector<std::string> folders;
  for (const fs::path& part : path.parent_path())
    folders.push_back(part.string());
  const std::string stem = path.stem().string();
  std::string split = split_before_shard(stem);
  if (split.empty()) split = split_in(stem);
  if (!folders.empty() && !split_in(folders.back()).empty()) {  // main/train/0000.parquet
    if (split.empty()) split = split_in(folders.back());
    folders.pop_back();
  }
  std::erase(folders, "data");
  return {.config = folders.empty() ? kDefaultConfig : fmt::format("{}", fmt::join(folders, "/")),
          .split = split.empty() ? kDefaultSplit : split};
}

// Paths below the folder with one of the endings; hidden files and folders are not data.
std::vector<fs::path> files_with(const fs::path& folder, const std::set<std::string>& endings) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error), end;
  for (std::size_t seen = 0; !error && entry != end && seen < kMaxFiles; ++seen) {
    const std::string name = entry->path().filename().string();
    std::error_code ignored;
    if (name.starts_with('.')) {
      entry.disable_recursion_pending();
    } else if (endings.contains(entry->path().extension().string()) &&
               name != "dataset_infos.json" && entry->is_regular_file(ignored)) {
      files.push_back(entry->path().lexically_relative(folder));
    }
    entry.increment(error);
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<fs::path> data_files(const fs::path& folder) {
  for (const std::set<std::string>& endings :
       {std::set<std::string>{".parquet", ".pq"}, {".jsonl"}, {".json"}}) {
    std::vector<fs::path> files = files_with(folder, endings);
    if (!files.empty()) return files;
  }
  return {};
}

std::vector<DataSplit> splits_of_card(const fs::path& folder, const std::vector<fs::path>& files) {
  std::error_code ignored;
  const fs::path card = folder / "README.md";
  if (!fs::is_regular_file(card, ignored)) return {};
  std::vector<DataSplit> splits;
  for (const CardFiles& entry : read_card(read_file(card, kMaxCardBytes))) {
    DataSplit split{.config = entry.config, .split = entry.split, .is_default = entry.is_default};
    for (const fs::path& file : files) {
      const bool fits =
          std::any_of(entry.patterns.begin(), entry.patterns.end(),
                      [&](const std::string& p) { return matches_pattern(file.string(), p); });
      if (fits) split.files.push_back(folder / file);
    }
    if (!split.files.empty()) splits.push_back(std::move(split));
  }
  return splits;
}

std::vector<std::string> configs_in(const std::vector<DataSplit>& splits) {
  std::set<std::string> names;
  for (const DataSplit& split : splits)
    names.insert(split.config);
  return {names.begin(), names.end()};
}

std::vector<std::string> splits_in(const std::vector<DataSplit>& splits,
                                   const std::string& config) {
  std::vector<std::string> names;
  for (const DataSplit& split : splits)
    if (split.config == config) names.push_back(split.split);
  return names;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Nothing where several could be meant.
std::optional<std::string> default_config(const std::vector<DataSplit>& splits) {
  const std::vector<std::string> configs = configs_in(splits);
  for (const DataSplit& split : splits)
    if (split.is_default) return split.config;
  for (const char* name : {kDefaultConfig, "main"})
    if (contains(configs, name)) return name;
  return configs.size() == 1 ? std::optional(configs.front()) : std::nullopt;
}

[[noreturn]] void throw_choices(const std::string& what, const std::vector<DataSplit>& splits,
                                const std::string& where) {
  std::vector<std::string> choices;
  for (const DataSplit& split : splits)
    choices.push_back(split.config + "/" + split.split);
  const std::string base = where.substr(0, where.find(':'));
  throw InputError(fmt::format("{}; it has {}", what, fmt::join(choices, ", ")),
                   {.where = where, .remedy = fmt::format("write e.g. {}:{}", base, choices[0])});
}

}  // namespace

std::vector<DataSplit> splits_of(const fs::path& folder) {
  const std::vector<fs::path> files = data_files(folder);
  std::vector<DataSplit> splits = splits_of_card(folder, files);
  if (splits.empty()) {
    std::map<std::pair<std::string, std::string>, DataSplit> by_name;
    for (const fs::path& file : files) {
      DataSplit found = split_of_path(file);
      DataSplit& split = by_name.try_emplace({found.config, found.split}, found).first->second;
      split.files.push_back(folder / file);
    }
    for (auto& [name, split] : by_name)
      splits.push_back(std::move(split));
  }
  std::stable_sort(splits.begin(), splits.end(), [](const DataSplit& a, const DataSplit& b) {
    return std::pair(a.config, a.split) < std::pair(b.config, b.split);
  });
  return splits;
}

DataSplit choose_split(const fs::path& folder, const std::string& selection,
                       const std::string& where) {
  const std::vector<DataSplit> splits = splits_of(folder);
  if (splits.empty()) {
    throw InputError(fmt::format("{} holds no Parquet, JSONL or JSON file", folder.string()),
                     {.where = where, .remedy = "name a data set, or a file"});
  }
  std::string config, split = kDefaultSplit;
  const std::optional<std::string> usual = default_config(splits);
  const std::size_t slash = selection.rfind('/');
  if (slash != std::string::npos) {
    config = selection.substr(0, slash);
    split = selection.substr(slash + 1);
  } else if (!selection.empty() && usual && contains(splits_in(splits, *usual), selection)) {
    config = *usual;
    split = selection;
  } else if (!selection.empty() && contains(configs_in(splits), selection)) {
    config = selection;
  } else if (!selection.empty()) {
    throw_choices(fmt::format("the data set has no config or split '{}'", selection), splits,
                  where);
  } else if (usual) {
    config = *usual;
  } else {
    throw_choices("the data set has several configs, and none is its default", splits, where);
  }
  const std::vector<std::string> names = splits_in(splits, config);
  const bool was_named = slash != std::string::npos || split != kDefaultSplit;
  if (!was_named && names.size() == 1) split = names.front();
  for (const DataSplit& found : splits)
    if (found.config == config && found.split == split) return found;
  throw_choices(fmt::format("the data set has no {}/{}", config, split), splits, where);
}

}  // namespace antisd::inline data
