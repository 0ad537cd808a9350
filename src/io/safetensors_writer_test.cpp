#include "io/safetensors_writer.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "core/check.h"
#include "core/testing.h"
#include "io/safetensors.h"

namespace antisd::inline io {
namespace {

using testing::error_of;
using testing::fixture;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// Reading the reference's file and writing it in the same order gives the same bytes.
TEST(SafetensorsWriter, WritesTheBytesThatTheReferenceWrites) {
  TemporaryFolder folder;
  for (const char* name : {"types", "plain", "none"}) {
    const auto path = fixture(fmt::format("io/{}.safetensors", name));
    const SafetensorsFile file(path);
    std::vector<TensorSpec> specs(file.tensors().begin(), file.tensors().end());
    // The reference's order: by type, widest first, then by name.
    std::ranges::sort(specs, [](const TensorSpec& a, const TensorSpec& b) {
      return std::tie(b.type, a.name) < std::tie(a.type, b.name);
    });
    SafetensorsWriter writer(folder / "copy", specs, file.metadata());
    for (const TensorSpec& spec : specs)
      writer.write(spec.name, file.find(spec.name)->data);
    writer.finish();
    EXPECT_EQ(read_file(folder / "copy"), read_file(path)) << name;
  }
}

TEST(SafetensorsWriter, TakesATensorInPieces) {
  TemporaryFolder folder;
  SafetensorsWriter writer(folder / "x",
                           {{"a", TensorType::kU8, {2, 3}}, {"b", TensorType::kF16, {}}});
  writer.write("a", bytes_of("12"));
  writer.write("a", bytes_of(""));
  writer.write("a", bytes_of("3456"));
  writer.write("b", bytes_of("78"));
  EXPECT_FALSE(std::filesystem::exists(folder / "x"));
  writer.finish();
  const SafetensorsFile file(folder / "x");
  EXPECT_TRUE(std::ranges::equal(file.find("a")->data, bytes_of("123456")));
  EXPECT_TRUE(std::ranges::equal(file.find("b")->data, bytes_of("78")));
}

TEST(SafetensorsWriter, ChecksWhatItsCallerDoes) {
  TemporaryFolder folder;
  const std::vector<TensorSpec> specs = {{"a", TensorType::kU8, {2}}, {"b", TensorType::kU8, {1}}};
  {
    SafetensorsWriter writer(folder / "x", specs);
    EXPECT_THROW(writer.write("b", bytes_of("1")), CheckFailure);
    EXPECT_THROW(writer.write("a", bytes_of("123")), CheckFailure);
    writer.write("a", bytes_of("12"));
    EXPECT_THROW(writer.finish(), CheckFailure);
    EXPECT_THROW(writer.write("a", bytes_of("1")), CheckFailure);
  }
  const auto open = [&](const TensorSpec& spec) {
    SafetensorsWriter writer(folder / "x", {specs[0], spec});
  };
  EXPECT_THROW(open(specs[0]), CheckFailure);
  EXPECT_THROW(open({"__metadata__", TensorType::kU8, {1}}), CheckFailure);
  EXPECT_THROW(open({"\xFF", TensorType::kU8, {1}}), CheckFailure);
  EXPECT_THROW(open({"c", TensorType::kU8, {-1}}), CheckFailure);
  EXPECT_THROW(open({"c", TensorType::kF32, {INT64_MAX}}), CheckFailure);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(SafetensorsWriter, ReportsAFullDisk) {
  EXPECT_THAT(error_of([] { SafetensorsWriter writer("/dev/full", {}); }), HasSubstr("no space"));
}

std::vector<TensorSpec> specs_of(const std::vector<std::int64_t>& sizes) {
  std::vector<TensorSpec> specs;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    specs.push_back({fmt::format("layer.{}", i), TensorType::kU8, {sizes[i]}});
  return specs;
}

void write_all(const std::filesystem::path& folder, const std::vector<TensorSpec>& specs,
               std::int64_t max_shard_bytes) {
  ShardedSafetensorsWriter writer(folder, specs, max_shard_bytes);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::string data(static_cast<std::size_t>(specs[i].shape[0]), static_cast<char>('a' + i));
    writer.write(specs[i].name, bytes_of(data));
  }
  writer.finish();
}

// The fixture's index was written by huggingface_hub for tensors of these sizes and shards of 100
// bytes.
TEST(ShardedSafetensorsWriter, CutsAsHuggingFaceDoes) {
  TemporaryFolder folder;
  const auto specs = specs_of({40, 60, 1, 99, 100, 4, 4, 92, 1, 7});
  write_all(folder.path(), specs, 100);
  EXPECT_EQ(read_file(folder / "model.safetensors.index.json"),
            read_file(fixture("io/shards.index.json")));
  const SafetensorsDirectory model(folder.path());
  EXPECT_EQ(model.files().size(), 5u);
  ASSERT_EQ(model.tensors().size(), specs.size());
  EXPECT_TRUE(model.surplus().empty());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const SafetensorsTensor* tensor = model.find(specs[i].name);
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(tensor->shape, specs[i].shape);
    EXPECT_TRUE(
        std::ranges::all_of(tensor->data, [&](std::byte b) { return b == std::byte('a' + i); }));
  }
}

TEST(ShardedSafetensorsWriter, GivesALargeTensorAShardToItselfAndTakesEmptyOnes) {
  TemporaryFolder folder;
  write_all(folder.path(), specs_of({0, 5, 500, 5, 100, 0, 100, 0}), 100);
  const SafetensorsDirectory model(folder.path());
  EXPECT_EQ(model.files().size(), 5u);
  EXPECT_EQ(model.tensors().size(), 8u);
}

TEST(ShardedSafetensorsWriter, ReplacesOlderWeightsOnlyAtTheEnd) {
  TemporaryFolder folder;
  write_all(folder.path(), specs_of({10, 10, 10}), 10);
  write_file_atomically(folder / "model-best.safetensors", "mine");
  {
    ShardedSafetensorsWriter abandoned(folder.path(), specs_of({10, 10}), 10);
    abandoned.write("layer.0", bytes_of("0123456789"));
    abandoned.write("layer.1", bytes_of("01234"));
  }
  EXPECT_EQ(SafetensorsDirectory(folder.path()).tensors().size(), 3u);
  write_all(folder.path(), specs_of({10, 10}), 100);
  EXPECT_TRUE(std::filesystem::exists(folder / "model.safetensors"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2);
  EXPECT_EQ(SafetensorsDirectory(folder.path()).tensors().size(), 2u);
  write_all(folder.path(), specs_of({10, 10, 10, 10}), 20);
  EXPECT_EQ(SafetensorsDirectory(folder.path()).tensors().size(), 4u);
  EXPECT_EQ(read_file(folder / "model-best.safetensors"), "mine");
}

TEST(ShardedSafetensorsWriter, WritesAnEmptyModel) {
  TemporaryFolder folder;
  write_all(folder.path(), {}, 100);
  EXPECT_TRUE(SafetensorsDirectory(folder.path()).tensors().empty());
}

}  // namespace
}  // namespace antisd::inline io
