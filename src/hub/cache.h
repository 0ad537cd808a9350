// The local Hugging Face cache, which huggingface_hub, transformers and `antisd fetch` share:
//
// models--Qwen--Qwen3-0.6B/refs/main           the commit that the branch was at
// models--Qwen--Qwen3-0.6B/snapshots/<commit>  the files, as links into blobs/
// models--Qwen--Qwen3-0.6B/blobs/<hash>        their contents
//
//   if (const auto found = find_snapshot(*parse_repo_name(RepoType::kModel, "Qwen/Qwen3-0.6B")))
//     use(found->folder / "config.json");
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "hub/repo_name.h"

namespace antisd::inline hub {

struct Snapshot {
  RepoName repo;  // its revision is the whole commit hash
  std::filesystem::path folder;

  bool operator==(const Snapshot&) const = default;
};

// $HF_HOME, else $XDG_CACHE_HOME/huggingface, else ~/.cache/huggingface.
std::filesystem::path home_folder();
// $HF_HUB_CACHE, else $HUGGINGFACE_HUB_CACHE, else hub/ of home_folder().
std::filesystem::path cache_folder();

// A path that a variable of the environment names, with a leading ~; nothing if it is empty.
std::optional<std::filesystem::path> path_variable(const char* name);

// The snapshot that a revision names, if the cache holds it. InputError for an abbreviated commit
// hash that fits several.
std::optional<Snapshot> find_snapshot(const RepoName& repo,
                                      const std::filesystem::path& cache = cache_folder());

// The snapshot whose folder this is, by the folder's path alone.
std::optional<Snapshot> snapshot_of(const std::filesystem::path& folder);

// The folder of a model that is given as a path or as a name: a path that exists wins. A text that
// cannot be a name is returned as it is. InputError with what was looked for, where, and how to
// get it, if there is neither.
std::filesystem::path model_folder(const std::string& path_or_name);

// A name as OWNER/NAME@COMMIT, so that the same files are found again later; a path, and a name
// that the cache does not hold, stay as they are.
std::string pinned_model(const std::string& path_or_name);

// InputError: neither a folder nor in the cache.
[[noreturn]] void throw_absent(const RepoName& repo);

}  // namespace antisd::inline hub
