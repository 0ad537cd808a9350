#include "io/safetensors_writer.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "core/check.h"
#include "core/utf8.h"
#include "io/json.h"
#include "io/safetensors.h"

namespace antisd::inline io {
namespace {

std::string json_text(const std::string& text) {
  ANTISD_CHECK(!find_invalid_utf8(text));
  return to_json_line(Json(text));
}

std::int64_t bytes_of(const TensorSpec& spec) {
  const auto bytes = spec.byte_count();
  ANTISD_CHECK(bytes.has_value());
  return *bytes;
}

// The 8 bytes of length and the header, padded with spaces so that the data starts at a multiple of
// 8.
std::string make_header(const std::vector<TensorSpec>& specs, const SafetensorsMetadata& metadata) {
  std::vector<std::string> entries;
  if (!metadata.empty()) {
    std::vector<std::string> items;
    for (const auto& [key, value] : metadata)
      items.push_back(json_text(key) + ":" + json_text(value));
    entries.push_back(fmt::format("\"__metadata__\":{{{}}}", fmt::join(items, ",")));
  }
  std::unordered_set<std::string_view> names;
  std::int64_t offset = 0;
  for (const TensorSpec& spec : specs) {
    ANTISD_CHECK(spec.name != "__metadata__" && names.insert(spec.name).second);
    const std::int64_t bytes = bytes_of(spec);
    ANTISD_CHECK_LE(bytes, INT64_MAX - offset);
    entries.push_back(fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                                  json_text(spec.name), name_of(spec.type),
                                  fmt::join(spec.shape, ","), offset, offset + bytes));
    offset += bytes;
  }
  std::string text = fmt::format("{{{}}}", fmt::join(entries, ","));
  text.resize((text.size() + 7) / 8 * 8, ' ');
  ANTISD_CHECK_LE(static_cast<std::int64_t>(text.size()), kMaxSafetensorsHeaderBytes);
  std::string length;
  for (int i = 0; i < 8; ++i)  // little-endian
    length.push_back(static_cast<char>(text.size() >> (8 * i) & 0xFF));
  return length + text;
}

bool is_shard_name(const std::string& name) {  // model-00001-of-00002.safetensors
  constexpr std::string_view kPattern = "model-#####-of-#####.safetensors";
  return std::ranges::equal(name, kPattern, [](char have, char want) {
    return want == '#' ? have >= '0' && have <= '9' : have == want;
  });
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     const std::vector<TensorSpec>& specs,
                                     const SafetensorsMetadata& metadata)
    : file_(path) {
  file_.write(make_header(specs, metadata));
  for (const TensorSpec& spec : specs)
    entries_.push_back({spec.name, bytes_of(spec)});
  skip_finished();
}

// A tensor without bytes needs no write().
void SafetensorsWriter::skip_finished() {
  while (next_ < entries_.size() && written_ == entries_[next_].bytes) {
    ++next_;
    written_ = 0;
  }
}

void SafetensorsWriter::write(std::string_view name, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  ANTISD_CHECK(!is_complete());
  ANTISD_CHECK_EQ(name, entries_[next_].name);
  ANTISD_CHECK_LE(static_cast<std::int64_t>(bytes.size()), entries_[next_].bytes - written_);
  file_.write(bytes);
  written_ += static_cast<std::int64_t>(bytes.size());
  skip_finished();
}

void SafetensorsWriter::finish() {
  ANTISD_CHECK(is_complete());
  file_.commit();
}

std::vector<SafetensorsShard> cut_shards(const std::string& stem,
                                         const std::vector<TensorSpec>& specs,
                                         std::int64_t max_bytes) {
  std::vector<SafetensorsShard> shards(1);
  std::int64_t shard_bytes = 0;
  for (const TensorSpec& spec : specs) {
    const std::int64_t bytes = bytes_of(spec);
    if (!shards.back().specs.empty() && bytes > max_bytes - shard_bytes) {
      shards.emplace_back();
      shard_bytes = 0;
    }
    shards.back().specs.push_back(spec);
    shard_bytes += bytes;
  }
  for (std::size_t i = 0; i < shards.size(); ++i) {
    shards[i].file = shards.size() == 1
                         ? stem + ".safetensors"
                         : fmt::format("{}-{:05}-of-{:05}.safetensors", stem, i + 1, shards.size());
  }
  return shards;
}

ShardedSafetensorsWriter::ShardedSafetensorsWriter(std::filesystem::path folder,
                                                   const std::vector<TensorSpec>& specs,
                                                   std::int64_t max_shard_bytes,
                                                   SafetensorsMetadata metadata)
    : folder_(std::move(folder)),
      metadata_(std::move(metadata)),
      shards_(cut_shards("model", specs, max_shard_bytes)) {
  writers_.reserve(shards_.size());
  writers_.emplace_back(folder_ / shards_.front().file, shards_.front().specs, metadata_);
}

void ShardedSafetensorsWriter::write(std::string_view name, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  while (writers_.back().is_complete() && writers_.size() < shards_.size()) {
    const SafetensorsShard& shard = shards_[writers_.size()];
    writers_.emplace_back(folder_ / shard.file, shard.specs, metadata_);
  }
  writers_.back().write(name, bytes);
}

void ShardedSafetensorsWriter::finish() {
  // The last shards may hold only tensors without bytes, for which there was no write().
  while (writers_.back().is_complete() && writers_.size() < shards_.size()) {
    const SafetensorsShard& shard = shards_[writers_.size()];
    writers_.emplace_back(folder_ / shard.file, shard.specs, metadata_);
  }
  ANTISD_CHECK_EQ(writers_.size(), shards_.size());
  for (SafetensorsWriter& writer : writers_)
    writer.finish();
  if (shards_.size() > 1) {
    write_file_atomically(folder_ / "model.safetensors.index.json", shard_index(shards_));
  }
  remove_older_weights();
}

// Byte for byte the output of Python's json.dumps(indent=2, sort_keys=True).
std::string shard_index(const std::vector<SafetensorsShard>& shards) {
  std::int64_t total = 0;
  SortedJson weight_map = SortedJson::object();
  for (const SafetensorsShard& shard : shards) {
    for (const TensorSpec& spec : shard.specs) {
      weight_map[spec.name] = shard.file;
      total += bytes_of(spec);
    }
  }
  const SortedJson index = {{"metadata", {{"total_size", total}}}, {"weight_map", weight_map}};
  return index.dump(2, ' ', true) + "\n";
}

// Readers prefer model.safetensors to an index, so old weights would hide the new ones.
void ShardedSafetensorsWriter::remove_older_weights() const {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool is_weights = name == "model.safetensors" || is_shard_name(name) ||
                            (name == "model.safetensors.index.json" && shards_.size() == 1);
    if (!is_weights || std::ranges::find(shards_, name, &SafetensorsShard::file) != shards_.end())
      continue;
    std::filesystem::remove(entry.path(), ignored);
  }
}

}  // namespace antisd::inline io
