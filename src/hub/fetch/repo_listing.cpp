#include "hub/fetch/repo_listing.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fnmatch.h>

#include "core/error.h"
#include "core/utf8.h"
#include "hub/repo_name.h"
#include "io/json.h"

namespace antisd::inline hub {
namespace {

constexpr std::size_t kMaxPath = 1024;
constexpr std::size_t kMaxPart = 255;

[[noreturn]] void refuse_listing(const std::string& what, const std::string& where) {
  throw RunError(what, {.where = where, .remedy = "check HF_ENDPOINT"});
}

RepoFile read_file_entry(const Json& entry, const std::string& where) {
  if (!entry.is_object() || !entry.contains("rfilename") || !entry["rfilename"].is_string())
    refuse_listing("an entry of the list of files has no name", where);
  RepoFile file{.path = entry["rfilename"].get<std::string>()};
  if (!is_safe_path(file.path)) {
    throw RunError(fmt::format("the hub lists a file with a dangerous name: {}",
                               Json(replace_invalid_utf8(file.path.substr(0, 200))).dump()),
                   {.where = where, .remedy = "do not use this repository"});
  }
  if (const auto size = entry.find("size"); size != entry.end() && size->is_number_unsigned())
    file.size = static_cast<std::int64_t>(
        std::min<std::uint64_t>(size->get<std::uint64_t>(), std::uint64_t{1} << 60));
  return file;
}

}  // namespace

bool is_safe_path(std::string_view path) {
  if (path.empty() || path.size() > kMaxPath) return false;
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    const std::string_view part = path.substr(start, end - start);
    if (part.empty() || part == "." || part == ".." || part.size() > kMaxPart) return false;
    start = end + 1;
  }
  return std::none_of(path.begin(), path.end(), [](char c) {
    return static_cast<unsigned char>(c) < ' ' || c == 127 || c == '\\';
  });
}

RepoListing parse_listing(const std::string& text, const std::string& where) {
  Json json;
  try {
    json = parse_json(text, where);
  } catch (const InputError&) {
    refuse_listing("the answer is not the hub's", where);
  }
  const auto sha = json.find("sha");
  const auto files = json.find("siblings");
  if (!json.is_object() || sha == json.end() || !sha->is_string() || files == json.end() ||
      !files->is_array() || !is_commit(sha->get<std::string>()))
    refuse_listing("the answer names no commit or no files", where);
  RepoListing listing{.commit = sha->get<std::string>(), .files = {}};
  std::set<std::string> paths;
  for (const Json& entry : *files) {
    listing.files.push_back(read_file_entry(entry, where));
    if (!paths.insert(listing.files.back().path).second)
      refuse_listing(fmt::format("the hub lists {} twice", listing.files.back().path), where);
  }
  for (const std::string& path : paths) {  // a file cannot be a folder too
    const auto next = paths.lower_bound(path + "/");
    if (next != paths.end() && next->starts_with(path + "/"))
      refuse_listing(fmt::format("the hub lists {} and {}", path, *next), where);
  }
  return listing;
}

const FilePatterns& model_patterns() {
  static const FilePatterns patterns{
      .include = {"*.safetensors", "*.json", "*.jinja", "*.txt", "*.model", "*.md", "LICENSE*"},
      .exclude = {"original/*", "onnx/*", "openvino/*", "*/original/*", "*/onnx/*"}};
  return patterns;
}

bool is_wanted(const std::string& path, const FilePatterns& patterns) {
  const auto fits = [&](const std::string& pattern) {
    return fnmatch(pattern.c_str(), path.c_str(), 0) == 0;
  };
  const auto& [include, exclude] = patterns;
  return (include.empty() || std::any_of(include.begin(), include.end(), fits)) &&
         std::none_of(exclude.begin(), exclude.end(), fits);
}

}  // namespace antisd::inline hub
