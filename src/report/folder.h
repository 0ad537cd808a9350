// A folder whose files are read while another program writes them. Missing files, non-regular files
// and files outside the boundary are treated as absent.
//
//   const Folder run("runs/a", {.boundary = std::filesystem::canonical("runs")});
//   if (const auto file = run.open("metrics.jsonl")) use(file->read(0, 4096));
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace antisd::inline report {

// Shows whether a file is still the one that was read before.
struct FileStamp {
  std::uint64_t device = 0, inode = 0;
  std::int64_t size = -1, modified_ns = 0;
  bool operator==(const FileStamp&) const = default;
  bool same_file(const FileStamp& other) const {
    return device == other.device && inode == other.inode;
  }
};

// Owns a descriptor.
class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  ~OpenFile();
  OpenFile(OpenFile&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  OpenFile& operator=(OpenFile&&) = delete;

  FileStamp stamp() const;
  // Up to `bytes` from `offset`; fewer at the end or on an error.
  std::string read(std::int64_t offset, std::int64_t bytes) const;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

struct FolderOptions {
  // If not empty: nothing outside this canonical path is opened, whatever links exist. The check is
  // on the opened descriptor, so replacing a link in between does not help.
  std::filesystem::path boundary = {};
};

class Folder {
 public:
  explicit Folder(std::filesystem::path path, FolderOptions options = {});

  std::optional<OpenFile> open(const std::string& name) const;
  // The whole file, or nothing if it is absent or longer than `max_bytes`.
  std::optional<std::string> read(const std::string& name, std::int64_t max_bytes) const;
  std::optional<FileStamp> stamp(const std::string& name) const;

  struct Entry {
    std::string name;
    bool is_folder;  // links are followed
  };
  // Sorted by name; the first `limit` that the system lists.
  std::vector<Entry> list(const std::string& name, std::size_t limit) const;
  Folder below(const std::string& name) const { return Folder(path_ / name, options_); }

  const std::filesystem::path& path() const { return path_; }

 private:
  std::optional<OpenFile> open_as(const std::string& name, bool folder) const;

  std::filesystem::path path_;
  FolderOptions options_;
};

}  // namespace antisd::inline report
