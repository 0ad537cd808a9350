// Weights in the safetensors format: 8 bytes of header length, a JSON header, the tensors' bytes.
//
//   SafetensorsDirectory model("Qwen3-4B");  // model.safetensors, or an index and its shards
//   if (const SafetensorsTensor* tensor = model.find("lm_head.weight")) copy(tensor->data);
//
// Files are mapped and checked completely when opened: every byte after the header belongs to
// exactly one tensor, and every tensor has as many bytes as its type and shape require.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/mapped_file.h"
#include "io/tensor_type.h"

namespace antisd::inline io {

inline constexpr std::int64_t kMaxSafetensorsHeaderBytes = 100'000'000;  // as in the reference

// `data` may be unaligned: read it with memcpy.
struct SafetensorsTensor : TensorSpec {
  std::span<const std::byte> data;
};

struct SafetensorsContents {
  std::map<std::string, std::string> metadata;
  std::vector<SafetensorsTensor> tensors;  // in the order of their bytes
};

// Parses a file's bytes, which the tensors' spans point into. InputError with `file` and the tensor
// for anything that violates the format.
SafetensorsContents parse_safetensors(std::span<const std::byte> bytes, const std::string& file);

class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const std::map<std::string, std::string>& metadata() const { return contents_.metadata; }
  const std::vector<SafetensorsTensor>& tensors() const { return contents_.tensors; }
  // Null if there is none of that name. Pointers stay valid as long as the file, also when it is
  // moved.
  const SafetensorsTensor* find(const std::string& name) const;

 private:
  std::filesystem::path path_;
  MappedFile mapping_;
  SafetensorsContents contents_;
  std::unordered_map<std::string, std::size_t> index_;
};

// The weights of a model: one file, or several listed in an index.
class SafetensorsDirectory {
 public:
  // A folder with model.safetensors or model.safetensors.index.json, or one of those files or any
  // other .safetensors file. InputError that lists every missing shard and every tensor that is not
  // in its shard.
  explicit SafetensorsDirectory(const std::filesystem::path& path);

  const std::vector<SafetensorsFile>& files() const { return files_; }
  // Shard by shard, in the order of their bytes; without the surplus ones.
  const std::vector<const SafetensorsTensor*>& tensors() const { return tensors_; }
  const SafetensorsTensor* find(const std::string& name) const;
  // "NAME in SHARD" for tensors in a shard where the index does not place them.
  const std::vector<std::string>& surplus() const { return surplus_; }

 private:
  void open_index(const std::filesystem::path& index);

  std::vector<SafetensorsFile> files_;
  std::vector<const SafetensorsTensor*> tensors_;
  std::unordered_map<std::string, const SafetensorsTensor*> by_name_;
  std::vector<std::string> surplus_;
};

}  // namespace antisd::inline io
