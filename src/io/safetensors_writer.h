// Writes weights to safetensors files, streaming: the layout is fixed first, then the bytes follow
// in its order.
//
//   ShardedSafetensorsWriter writer("out", specs, 5'000'000'000);
//   for (const TensorSpec& spec : specs) writer.write(spec.name, bytes_of(spec));
//   writer.finish();  // without it, no file is left
//
// A layout that violates the format's rules (two equal names, impossible shapes) and bytes that do
// not follow the layout are programming errors: ANTISD_CHECK. RunError if writing fails.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/atomic_file.h"
#include "io/tensor_type.h"

namespace antisd::inline io {

using SafetensorsMetadata = std::map<std::string, std::string>;

// transformers rejects files whose metadata does not name the framework.
inline const SafetensorsMetadata kPlainMetadata = {{"format", "pt"}};

class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::filesystem::path& path, const std::vector<TensorSpec>& specs,
                    const SafetensorsMetadata& metadata = kPlainMetadata);

  // The bytes of the next tensor, at once or in pieces.
  void write(std::string_view name, std::span<const std::byte> bytes);
  void finish();
  bool is_complete() const { return next_ == entries_.size(); }

 private:
  struct Entry {
    std::string name;
    std::int64_t bytes;
  };
  void skip_finished();

  AtomicFile file_;
  std::vector<Entry> entries_;
  std::size_t next_ = 0;
  std::int64_t written_ = 0;  // of the current entry
};

// The files that tensors are spread over, in their order.
struct SafetensorsShard {
  std::string file;
  std::vector<TensorSpec> specs;
};

// STEM.safetensors if everything fits into `max_bytes`; else STEM-00001-of-000NN.safetensors and so
// on. A tensor larger than that gets its own shard.
std::vector<SafetensorsShard> cut_shards(const std::string& stem,
                                         const std::vector<TensorSpec>& specs,
                                         std::int64_t max_bytes);
// The text of STEM.safetensors.index.json.
std::string shard_index(const std::vector<SafetensorsShard>& shards);

// model.safetensors if everything fits into `max_shard_bytes`; else
// model-00001-of-000NN.safetensors and so on with model.safetensors.index.json. Only finish() makes
// the files appear and removes older weights under these names.
class ShardedSafetensorsWriter {
 public:
  ShardedSafetensorsWriter(std::filesystem::path folder, const std::vector<TensorSpec>& specs,
                           std::int64_t max_shard_bytes,
                           SafetensorsMetadata metadata = kPlainMetadata);

  void write(std::string_view name, std::span<const std::byte> bytes);
  void finish();

 private:
  void remove_older_weights() const;

  std::filesystem::path folder_;
  SafetensorsMetadata metadata_;
  std::vector<SafetensorsShard> shards_;
  std::vector<SafetensorsWriter> writers_;  // of the shards so far; the last one is being written
};

}  // namespace antisd::inline io
