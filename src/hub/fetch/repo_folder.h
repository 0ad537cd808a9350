// A repository's folder in the Hugging Face cache, written as huggingface_hub writes it: contents
// in blobs/ under their hashes, snapshots/<commit>/ with links to them, refs/ with the commits of
// branches and tags, and one lock for each content.
//
//   RepoFolder folder(cache_folder(), repo);
//   const BlobLock lock = folder.lock(etag, stop, waiting);
//   // write folder.incomplete(etag), and rename it to folder.blob(etag)
//   folder.link(commit, "config.json", etag);
//   folder.set_ref("main", commit);
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "hub/repo_name.h"
#include "io/unique_fd.h"

namespace antisd::inline hub {

// Held by one process at a time; it ends with the process, however that ends.
class BlobLock {
 public:
  explicit BlobLock(UniqueFd file) : file_(std::move(file)) {}

 private:
  UniqueFd file_;
};

// RunError where the system refuses to write.
class RepoFolder {
 public:
  RepoFolder(const std::filesystem::path& cache, const RepoName& repo);

  std::filesystem::path blob(const std::string& etag) const;
  std::filesystem::path incomplete(const std::string& etag) const;
  std::filesystem::path snapshot(const std::string& commit) const;
  // Whether the snapshot has the file.
  bool has_file(const std::string& commit, const std::string& path) const;

  // Waits while another process holds it, and calls `waiting` once if so. FetchStopped.
  BlobLock lock(const std::string& etag, const std::function<bool()>& stop,
                const std::function<void()>& waiting) const;
  void link(const std::string& commit, const std::string& path, const std::string& etag) const;
  void set_ref(const std::string& name, const std::string& commit) const;

 private:
  std::filesystem::path folder_, locks_;
};

// Whether an ETag can be the name of a file in blobs/.
bool is_blob_name(const std::string& etag);

}  // namespace antisd::inline hub
