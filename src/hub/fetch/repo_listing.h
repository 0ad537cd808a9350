// What the hub says about a repository at a revision: the commit, and its files. Everything in it
// comes from the network, so names are checked before they become paths.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace antisd::inline hub {

struct RepoFile {
  std::string path;       // from the repository's root
  std::int64_t size = 0;  // 0 where the hub does not say
};

struct RepoListing {
  std::string commit;
  std::vector<RepoFile> files;
};

// The answer of /api/models/NAME/revision/REVISION?blobs=true. RunError that names `where` for an
// answer of another form, and for a file whose name would lead out of the snapshot.
RepoListing parse_listing(const std::string& text, const std::string& where);

// Relative, of plain parts, without "..", control characters or backslashes.
bool is_safe_path(std::string_view path);

struct FilePatterns {
  std::vector<std::string> include, exclude;  // as a shell's; * goes beyond folders. Empty: all
};

// What this program reads of a model: safetensors, configuration, tokenizer. No second copy of the
// weights in another format.
const FilePatterns& model_patterns();

bool is_wanted(const std::string& path, const FilePatterns& patterns);

}  // namespace antisd::inline hub
