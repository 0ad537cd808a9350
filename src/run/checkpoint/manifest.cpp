#include "run/checkpoint/manifest.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "io/atomic_file.h"
#include "io/checksum.h"
#include "io/json.h"

namespace antisd::inline run {
namespace {

namespace fs = std::filesystem;

constexpr int kFormat = 1;
constexpr std::int64_t kMaxManifestBytes = 16 << 20;
constexpr const char* kRemedy = "use another checkpoint";
// Files that every checkpoint needs, whatever its manifest says.
constexpr const char* kState = "state.json";
// One of them, and
constexpr const char* kModelConfig = "model/config.json";
constexpr const char* kAdapterConfig = "adapter/adapter_config.json";
// one of them.
constexpr const char* kOptimizer = "optimizer.safetensors";
constexpr const char* kOptimizerIndex = "optimizer.safetensors.index.json";

struct Entry {
  std::string path;  // relative, with '/'
  std::uint64_t bytes;
  std::string xxh3;
};

[[noreturn]] void refuse(const fs::path& path, const std::string& problem) {
  throw InputError(problem, {.where = path.string(), .remedy = kRemedy});
}

bool stays_inside(const fs::path& path) {
  return !path.empty() && path.is_relative() &&
         std::ranges::none_of(path, [](const fs::path& part) { return part == ".."; });
}

Entry parse_entry(const Json& json, const fs::path& manifest) {
  const auto text = [&](const char* key) {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_string())
      refuse(manifest, fmt::format("an entry has no text \"{}\"", key));
    return found->get<std::string>();
  };
  if (!json.is_object()) refuse(manifest, "an entry is not an object");
  const auto bytes = json.find("bytes");
  if (bytes == json.end() || !bytes->is_number_unsigned())
    refuse(manifest, "an entry has no count of bytes");
  Entry entry{text("path"), bytes->get<std::uint64_t>(), text("xxh3")};
  if (!stays_inside(entry.path)) refuse(manifest, "an entry leaves the folder: " + entry.path);
  return entry;
}

std::vector<Entry> read_entries(const fs::path& folder, std::int64_t step) {
  const fs::path manifest = folder / kManifestName;
  const Json json = parse_json(read_file(manifest, kMaxManifestBytes), manifest.string());
  if (!json.is_object()) refuse(manifest, "the manifest is not an object");
  if (json.value("format", Json()) != kFormat) refuse(manifest, "of another format");
  if (json.value("step", Json()) != step) refuse(manifest, "it is of another step");
  const auto files = json.find("files");
  if (files == json.end() || !files->is_array()) refuse(manifest, "it lists no files");
  std::vector<Entry> entries;
  std::set<std::string> names;
  for (const Json& file : *files) {
    entries.push_back(parse_entry(file, manifest));
    names.insert(entries.back().path);
  }
  const auto require = [&](const char* name, const char* or_else) {
    if (!names.contains(name) && !names.contains(or_else))
      refuse(manifest, fmt::format("it does not list {}", name));
  };
  require(kModelConfig, kAdapterConfig);
  require(kState, kState);
  require(kOptimizer, kOptimizerIndex);
  return entries;
}

}  // namespace

void write_manifest(const fs::path& folder, std::int64_t step) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  Json files = Json::array();
  for (const fs::path& path : paths) {
    files.push_back({{"path", path.lexically_relative(folder).generic_string()},
                     {"bytes", fs::file_size(path)},
                     {"xxh3", checksum_of_file(path)}});
  }
  const Json manifest = {{"format", kFormat}, {"step", step}, {"files", files}};
  write_file_atomically(folder / kManifestName, manifest.dump(1) + "\n");
}

void verify_manifest(const fs::path& folder, std::int64_t step) {
  const std::vector<Entry> entries = read_entries(folder, step);
  for (const Entry& entry : entries) {
    const fs::path path = folder / entry.path;
    std::error_code error;
    const std::uintmax_t bytes = fs::file_size(path, error);
    if (error) refuse(path, "the file is missing");
    if (bytes != entry.bytes)
      refuse(path, fmt::format("{} bytes instead of {}", bytes, entry.bytes));
  }
  for (const Entry& entry : entries) {
    if (checksum_of_file(folder / entry.path) != entry.xxh3)
      refuse(folder / entry.path, "its checksum is not that of what was written");
  }
}

}  // namespace antisd::inline run
