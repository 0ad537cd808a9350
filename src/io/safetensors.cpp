#include "io/safetensors.h"

#include <fmt/format.h>

#include "core/error.h"
#include "io/atomic_file.h"
#include "io/json.h"

namespace antisd::inline io {
namespace {

constexpr const char* kSingleName = "model.safetensors";
constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr std::int64_t kMaxIndexBytes = 100'000'000;

// "a, b, c and 7 more"
std::string listed(const std::vector<std::string>& items) {
  constexpr std::size_t kShown = 20;
  std::string text = fmt::format(
      "{}", fmt::join(items.begin(), items.begin() + std::min(items.size(), kShown), ", "));
  if (items.size() > kShown) text += fmt::format(" and {} more", items.size() - kShown);
  return text;
}

// A shard is in its index's folder or below; an index may not refer elsewhere.
bool is_inside(const std::filesystem::path& shard) {
  return !shard.empty() && shard.is_relative() && shard.has_filename() &&
         std::ranges::find(shard, "..") == shard.end();
}

// shard -> the tensors that the index places there
std::map<std::string, std::vector<std::string>> read_weight_map(
    const std::filesystem::path& index) {
  const std::string where = index.string();
  const SortedJson json = parse_sorted_json(read_file(index, kMaxIndexBytes), where);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object()) {
    throw InputError("not an index of safetensors files: it has no \"weight_map\" of names",
                     {.where = where, .remedy = "fetch the file again"});
  }
  std::map<std::string, std::vector<std::string>> shards;
  for (const auto& [tensor, shard] : json["weight_map"].items()) {
    if (!shard.is_string() || !is_inside(shard.get<std::string>())) {
      throw InputError(fmt::format("the file of tensor {} is not in the same folder", tensor),
                       {.where = where, .remedy = "fetch the file again"});
    }
    shards[shard.get<std::string>()].push_back(tensor);
  }
  return shards;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : path_(path), mapping_(path), contents_(parse_safetensors(mapping_.bytes(), path.string())) {
  index_.reserve(contents_.tensors.size());
  for (std::size_t i = 0; i < contents_.tensors.size(); ++i)
    index_.emplace(contents_.tensors[i].name, i);
}

const SafetensorsTensor* SafetensorsFile::find(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &contents_.tensors[found->second];
}

SafetensorsDirectory::SafetensorsDirectory(const std::filesystem::path& path) {
  std::error_code ignored;
  std::filesystem::path file = path;
  if (std::filesystem::is_directory(path, ignored)) {
    file = path / kSingleName;
    if (!std::filesystem::exists(file, ignored)) file = path / kIndexName;
    if (!std::filesystem::exists(file, ignored)) {
      throw InputError(fmt::format("the folder has neither {} nor {}", kSingleName, kIndexName),
                       {.where = path.string(),
                        .remedy = "fetch the model's safetensors files, or convert its weights"});
    }
  }
  if (file.extension() == ".json") {
    open_index(file);
    return;
  }
  files_.emplace_back(file);
  for (const SafetensorsTensor& tensor : files_.front().tensors()) {
    tensors_.push_back(&tensor);
    by_name_.emplace(tensor.name, &tensor);
  }
}

void SafetensorsDirectory::open_index(const std::filesystem::path& index) {
  const auto shards = read_weight_map(index);
  std::vector<std::string> missing;
  std::error_code ignored;
  for (const auto& [shard, names] : shards)
    if (!std::filesystem::exists(index.parent_path() / shard, ignored)) missing.push_back(shard);
  if (!missing.empty()) {
    throw InputError(fmt::format("{} of {} files are missing: {}", missing.size(), shards.size(),
                                 listed(missing)),
                     {.where = index.string(), .remedy = "fetch them into the same folder"});
  }

  files_.reserve(shards.size());
  for (const auto& [shard, names] : shards) {
    const SafetensorsFile& file = files_.emplace_back(index.parent_path() / shard);
    for (const std::string& name : names) {
      const SafetensorsTensor* tensor = file.find(name);
      if (tensor == nullptr) missing.push_back(fmt::format("{} in {}", name, shard));
      by_name_.emplace(name, tensor);
    }
    for (const SafetensorsTensor& tensor : file.tensors()) {
      const auto placed = by_name_.find(tensor.name);
      if (placed != by_name_.end() && placed->second == &tensor) {
        tensors_.push_back(&tensor);
      } else {
        surplus_.push_back(fmt::format("{} in {}", tensor.name, shard));
      }
    }
  }
  if (!missing.empty()) {
    throw InputError(
        fmt::format("{} tensors are not in the files that the index gives for them: {}",
                    missing.size(), listed(missing)),
        {.where = index.string(), .remedy = "fetch the index and its files again"});
  }
}

const SafetensorsTensor* SafetensorsDirectory::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

}  // namespace antisd::inline io
