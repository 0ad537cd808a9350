#include "data/data_source.h"

#include <array>

#include "core/error.h"
#include "data/countdown.h"
#include "data/data_set.h"
#include "hub/cache.h"
#include "io/text_source.h"

namespace antisd::inline data {
namespace {

namespace fs = std::filesystem;

// A missing file of such a name is a missing file, not a data set.
constexpr std::array kFileEndings = {".jsonl", ".json", ".parquet", ".pq", ".txt",
                                     ".md",    ".csv",  ".tsv",     ".gz", ".zst"};

bool names_file(const std::string& text) {
  const std::string ending = fs::path(text).extension().string();
  return std::find(kFileEndings.begin(), kFileEndings.end(), ending) != kFileEndings.end();
}

DataSource file_source(const std::string& text) {
  return {.text = text, .stem = without_gz(text).stem().string(), .files = {text}};
}

struct NamedFolder {
  fs::path folder;
  std::string base;  // as it is recorded
  std::string stem;
};

DataSource data_set_source(const NamedFolder& named, const std::string& selection,
                           const std::string& where) {
  DataSplit split = choose_split(named.folder, selection, where);
  const DataSplit usual = [&] {
    try {
      return choose_split(named.folder, "", where);
    } catch (const InputError&) {  // none is the default
      return DataSplit{};
    }
  }();
  std::string stem = named.stem;
  if (split.config != usual.config) stem += "_" + fs::path(split.config).filename().string();
  if (split.split != "train") stem += "_" + split.split;
  return {.text = named.base + ":" + split.config + "/" + split.split,
          .stem = stem,
          .files = std::move(split.files),
          .is_data_set = true};
}

NamedFolder local_folder(const std::string& text) {
  fs::path folder = fs::path(text).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  std::string stem = folder.filename().string();
  if (const std::optional<Snapshot> snapshot = snapshot_of(folder))
    stem = fs::path(snapshot->repo.name).filename().string();
  return {.folder = folder, .base = text, .stem = stem};
}

bool is_data_folder(const std::string& text) {
  std::error_code ignored;
  return fs::is_directory(text, ignored);
}

}  // namespace

DataSource find_source(const std::string& text) {
  std::error_code ignored;
  if (text.empty() || is_countdown_source(text)) return file_source(text);
  if (is_data_folder(text)) return data_set_source(local_folder(text), "", text);
  if (fs::exists(text, ignored)) return file_source(text);
  const std::size_t colon = text.find(':');
  const std::string base = text.substr(0, colon);
  const std::string selection = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (is_data_folder(base)) return data_set_source(local_folder(base), selection, text);
  const std::optional<RepoName> repo = parse_repo_name(RepoType::kDataset, base);
  if (!repo || names_file(repo->name)) return file_source(text);
  const std::optional<Snapshot> found = find_snapshot(*repo);
  if (!found && repo->name.find('/') == std::string::npos) return file_source(text);
  if (!found) throw_absent(*repo);
  return data_set_source({.folder = found->folder,
                          .base = text_of(found->repo),
                          .stem = fs::path(repo->name).filename().string()},
                         selection, text);
}

std::string pinned_source(const std::string& text) {
  try {
    return find_source(text).text;
  } catch (const InputError&) {
    return text;
  }
}

}  // namespace antisd::inline data
