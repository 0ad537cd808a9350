#include "io/safetensors.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "core/testing.h"
#include "io/atomic_file.h"
#include "io/jsonl.h"

namespace antisd::inline io {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::error_of;
using testing::fixture;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes)
    text += fmt::format("{:02x}", std::to_integer<int>(byte));
  return text;
}

std::string file_of(const std::string& header, std::size_t data_bytes) {
  std::string file;
  for (int i = 0; i < 8; ++i)
    file.push_back(static_cast<char>(header.size() >> (8 * i) & 0xFF));
  return file + header + std::string(data_bytes, '\1');
}

std::string tensor(const std::string& name, const std::string& type, const std::string& shape,
                   const std::string& offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{}]}})", name, type, shape,
                     offsets);
}

SafetensorsContents parse(const std::string& file) {
  return parse_safetensors(std::as_bytes(std::span(file)), "f.safetensors");
}

std::string problem_of(const std::string& file) {
  return error_of([&] { parse(file); });
}

std::string problem_of(const std::string& header, std::size_t data_bytes) {
  return problem_of(file_of(header, data_bytes));
}

TEST(SafetensorsFile, ReadsEveryTypeThatTheReferenceWrites) {
  const SafetensorsFile file(fixture("io/types.safetensors"));
  JsonlReader expected(fixture("io/types.safetensors.jsonl"));
  std::size_t count = 0;
  for (Json row; expected.next(row); ++count) {
    const SafetensorsTensor* tensor = file.find(row["name"]);
    ASSERT_NE(tensor, nullptr) << row["name"];
    EXPECT_EQ(name_of(tensor->type), row["dtype"]);
    EXPECT_EQ(tensor->shape, row["shape"].get<std::vector<std::int64_t>>());
    EXPECT_EQ(hex(tensor->data), row["data"]);
  }
  EXPECT_EQ(count, 20u);
  EXPECT_EQ(file.tensors().size(), count);
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"format", "pt"}}));
  EXPECT_EQ(file.find("no such tensor"), nullptr);
  EXPECT_TRUE(SafetensorsFile(fixture("io/none.safetensors")).tensors().empty());
}

TEST(SafetensorsFile, KeepsItsPointersWhenItMoves) {
  SafetensorsFile file(fixture("io/plain.safetensors"));
  const SafetensorsTensor* tensor = file.find("a");
  const SafetensorsFile moved = std::move(file);
  EXPECT_EQ(moved.find("a"), tensor);
  EXPECT_EQ(hex(tensor->data), "61626364");
}

TEST(SafetensorsFile, RefusesWhatIsNoFile) {
  TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { SafetensorsFile file(folder / "none"); }), HasSubstr("no such file"));
  EXPECT_THAT(error_of([&] { SafetensorsFile file(folder.path()); }), HasSubstr("it is a folder"));
  EXPECT_THAT(error_of([&] { SafetensorsFile file("/dev/null"); }), HasSubstr("a device"));
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { SafetensorsFile file(folder / "pipe"); }), HasSubstr("a pipe"));
  write_file_atomically(folder / "empty", "");
  EXPECT_THAT(
      error_of([&] { SafetensorsFile file(folder / "empty"); }),
      AllOf(HasSubstr("empty: not a safetensors file: it has 0 bytes"), HasSubstr("; fetch")));
}

TEST(ParseSafetensors, TakesWhatTheFormatAllows) {
  // Unsorted header, spaces, a tensor without elements, half-byte elements.
  const auto contents = parse(
      file_of("{" + tensor("b", "F16", "2", "1,5") + ", " + tensor("a", "F4", "2", "0,1") + "," +
                  tensor("e", "I64", "9223372036854775807,9223372036854775807,0", "5,5") +
                  R"(,"__metadata__":{}} )",
              5));
  ASSERT_EQ(contents.tensors.size(), 3u);
  EXPECT_EQ(contents.tensors[0].name, "a");
  EXPECT_EQ(contents.tensors[1].name, "b");
  EXPECT_EQ(contents.tensors[2].name, "e");
  EXPECT_EQ(contents.tensors[1].data.size(), 4u);
}

TEST(ParseSafetensors, RefusesACutFileAtEveryLength) {
  const std::string whole = read_file(fixture("io/types.safetensors"));
  for (std::size_t size = 0; size < whole.size(); ++size)
    ASSERT_THROW(parse(whole.substr(0, size)), InputError) << size;
  EXPECT_THAT(
      problem_of(whole.substr(0, whole.size() - 1)),
      AllOf(HasSubstr("f.safetensors: the file is cut short: tensor \""), HasSubstr("; fetch")));
  EXPECT_THAT(problem_of(file_of("{}      ", 0).substr(0, 15)),
              HasSubstr("cut short: a header of 8 bytes in a file of 15"));
  EXPECT_THAT(problem_of(whole + "x"), HasSubstr("1 bytes at the end belong to no tensor"));
}

TEST(ParseSafetensors, RefusesABadHeaderLength) {
  EXPECT_THAT(problem_of(std::string("\x10\0\0\0\0\0\0\0{}", 10)),
              HasSubstr("a header of 16 bytes in a file of 10"));
  EXPECT_THAT(problem_of(std::string(8, '\xFF') + "{}"), HasSubstr("18446744073709551615"));
  EXPECT_THAT(problem_of(std::string("\x01\xE1\xF5\x05\0\0\0\0{}", 10)), HasSubstr("100000001"));
  EXPECT_THAT(problem_of(std::string(8, '\0')), HasSubstr("not a JSON object"));
  EXPECT_THAT(problem_of("\xEF\xBB\xBF{}", 0), HasSubstr("not a JSON object"));
  EXPECT_THAT(problem_of(" {}", 0), HasSubstr("not a JSON object"));
  EXPECT_THAT(problem_of("{} {}", 0), HasSubstr("not valid JSON at its byte"));
  EXPECT_THAT(problem_of("{\"\xFF\":1}", 0), HasSubstr("not valid JSON"));
  EXPECT_THAT(problem_of("{" + std::string(100'000, '['), 0), HasSubstr("not valid JSON"));
}

TEST(ParseSafetensors, RefusesBadOffsets) {
  const auto two = [](const char* first, const char* second, std::size_t bytes) {
    return problem_of(
        "{" + tensor("a", "U8", "4", first) + "," + tensor("b", "U8", "4", second) + "}", bytes);
  };
  EXPECT_THAT(two("0,4", "2,6", 8), HasSubstr("tensor \"b\" overlaps tensor \"a\""));
  EXPECT_THAT(two("0,4", "0,4", 4), HasSubstr("overlaps"));
  EXPECT_THAT(two("0,4", "5,9", 9), HasSubstr("1 bytes before tensor \"b\""));
  EXPECT_THAT(two("1,5", "5,9", 9), HasSubstr("1 bytes before tensor \"a\""));
  EXPECT_THAT(two("0,4", "4,8", 7), HasSubstr("cut short"));
  EXPECT_THAT(two("4,0", "4,8", 8), HasSubstr("not a begin and an end"));
  EXPECT_THAT(two("0,4,4", "4,8", 8), HasSubstr("not a begin and an end"));
  EXPECT_THAT(two("0,5", "5,9", 9),
              HasSubstr("tensor \"a\": its type and shape need 4 bytes, its offsets give it 5"));
  EXPECT_THAT(two("-4,0", "0,4", 4), HasSubstr("the number -4"));
  EXPECT_THAT(two("0,4", "4,8.5", 8), HasSubstr("the number 8.5"));
  EXPECT_THAT(two("0,4", "9223372036854775804,9223372036854775808", 4),
              HasSubstr("the number 92233"));
}

TEST(ParseSafetensors, RefusesShapesThatOverflow) {
  const auto shape = [](const char* text) {
    return problem_of("{" + tensor("a", "F32", text, "0,4") + "}", 4);
  };
  EXPECT_THAT(shape("4294967296,4294967296"), HasSubstr("no file can hold F32"));
  EXPECT_THAT(shape("9223372036854775807"), HasSubstr("no file can hold F32"));
  EXPECT_THAT(shape("9223372036854775808"), HasSubstr("the number 9223372036854775808"));
  EXPECT_THAT(shape("18446744073709551617"), HasSubstr("the number 18446744073709551617"));
  EXPECT_THAT(shape("-1"), HasSubstr("the number -1"));
  EXPECT_THAT(problem_of("{" + tensor("a", "F4", "3", "0,1") + "}", 1),
              HasSubstr("no file can hold F4"));
}

TEST(ParseSafetensors, RefusesBadEntries) {
  const std::string good = tensor("a", "U8", "1", "0,1");
  EXPECT_THAT(problem_of("{" + good + "," + good + "}", 1), HasSubstr("two entries \"a\""));
  EXPECT_THAT(problem_of("{" + tensor("a", "F128", "1", "0,16") + "}", 16),
              AllOf(HasSubstr("tensor \"a\": the unknown type \"F128\""), HasSubstr("; convert")));
  EXPECT_THAT(problem_of(R"({"a":{"dtype":"U8","shape":[1]}})", 1), HasSubstr("is missing"));
  EXPECT_THAT(problem_of(R"({"a":{"dtype":"U8","dtype":"U8"}})", 1), HasSubstr("two fields"));
  EXPECT_THAT(problem_of(R"({"a":{"size":1}})", 1), HasSubstr("unknown field \"size\""));
  EXPECT_THAT(problem_of(R"({"a":{"dtype":{}}})", 1), HasSubstr("an object where the format"));
  EXPECT_THAT(problem_of(R"({"a":{"dtype":[1]}})", 1), HasSubstr("a list where the format"));
  EXPECT_THAT(problem_of(R"({"a":{"shape":"x"}})", 1), HasSubstr("a string where the format"));
  EXPECT_THAT(problem_of(R"({"a":{"shape":[[1]]}})", 1), HasSubstr("a list where the format"));
  EXPECT_THAT(problem_of(R"({"a":{"shape":[null]}})", 1), HasSubstr("null where the format"));
  EXPECT_THAT(problem_of(R"({"a":{"shape":3}})", 1), HasSubstr("the number 3"));
  EXPECT_THAT(problem_of(R"({"a":1})", 1),
              HasSubstr("the number 1 where the format allows none, at \"a\""));
  EXPECT_THAT(problem_of(R"({"a":[]})", 1), HasSubstr("a list"));
  EXPECT_THAT(problem_of(R"({"__metadata__":{"k":1}})", 0), HasSubstr("the number 1"));
  EXPECT_THAT(problem_of(R"({"__metadata__":{"k":"1","k":"2"}})", 0),
              HasSubstr("two entries \"k\""));
  EXPECT_THAT(problem_of(R"({"__metadata__":{},"__metadata__":{}})", 0), HasSubstr("two entries"));
}

class SafetensorsDirectoryTest : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& bytes) {
    write_file_atomically(folder_ / name, bytes);
  }
  void write_shard(const std::string& name, const std::string& first, const std::string& second) {
    write(name, file_of("{" + tensor(first, "U8", "2", "0,2") + "," +
                            tensor(second, "U8", "1", "2,3") + "}",
                        3));
  }
  std::string problem() {
    return error_of([&] { SafetensorsDirectory model(folder_.path()); });
  }
  TemporaryFolder folder_;
};

TEST_F(SafetensorsDirectoryTest, OpensShardsAndReportsTheSurplus) {
  write(
      "model.safetensors.index.json",
      R"({"metadata":{},"weight_map":{"a":"1.safetensors","b":"2.safetensors","c":"2.safetensors","d":"3.safetensors"}})");
  write_shard("1.safetensors", "a", "b");
  write_shard("2.safetensors", "c", "b");
  write_shard("3.safetensors", "a", "d");
  const SafetensorsDirectory model(folder_.path());
  std::vector<std::string> names;
  for (const SafetensorsTensor* tensor : model.tensors())
    names.push_back(tensor->name);
  EXPECT_THAT(names, ElementsAre("a", "c", "b", "d"));
  EXPECT_THAT(model.surplus(), ElementsAre("b in 1.safetensors", "a in 3.safetensors"));
  EXPECT_EQ(model.files().size(), 3u);
  EXPECT_EQ(model.find("b"), model.files()[1].find("b"));
  EXPECT_EQ(model.find("x"), nullptr);
}

TEST_F(SafetensorsDirectoryTest, ListsEverythingThatIsMissing) {
  write("model.safetensors.index.json",
        R"({"weight_map":{"a":"1.safetensors","x":"1.safetensors","y":"2.safetensors"}})");
  EXPECT_THAT(problem(), HasSubstr("2 of 2 files are missing: 1.safetensors, 2.safetensors"));
  write_shard("1.safetensors", "a", "b");
  EXPECT_THAT(problem(), HasSubstr("1 of 2 files are missing: 2.safetensors"));
  write_shard("2.safetensors", "c", "d");
  EXPECT_THAT(problem(), AllOf(HasSubstr("2 tensors are not in the files"),
                               HasSubstr("x in 1.safetensors, y in 2.safetensors")));
}

TEST_F(SafetensorsDirectoryTest, RefusesBadIndexes) {
  EXPECT_THAT(problem(), HasSubstr("neither model.safetensors nor"));
  const auto index = [&](const std::string& text) {
    write("model.safetensors.index.json", text);
    return problem();
  };
  EXPECT_THAT(index("{"), HasSubstr("not valid JSON"));
  EXPECT_THAT(index("[]"), HasSubstr("no \"weight_map\""));
  EXPECT_THAT(index(R"({"weight_map":[]})"), HasSubstr("no \"weight_map\""));
  EXPECT_THAT(index(R"({"weight_map":{"a":1}})"), HasSubstr("the file of tensor a is not in"));
  EXPECT_THAT(index(R"({"weight_map":{"a":"../x"}})"), HasSubstr("the file of tensor a is not in"));
  EXPECT_THAT(index(R"({"weight_map":{"a":"/etc/passwd"}})"),
              HasSubstr("the file of tensor a is not in"));
  EXPECT_THAT(index(R"({"weight_map":{"a":""}})"), HasSubstr("the file of tensor a is not in"));
}

TEST_F(SafetensorsDirectoryTest, PrefersTheSingleFile) {
  write("model.safetensors.index.json", "{");
  write_shard("model.safetensors", "a", "b");
  EXPECT_EQ(SafetensorsDirectory(folder_.path()).tensors().size(), 2u);
  EXPECT_EQ(SafetensorsDirectory(folder_ / "model.safetensors").tensors().size(), 2u);
}

TEST(SafetensorsDirectory, OpensRealModels) {
  const auto root = testing::shared_data("weights");
  ANTISD_NEEDS_SHARED(root);
  int models = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().filename() != "model.safetensors") continue;
    const SafetensorsDirectory model(entry.path().parent_path());
    EXPECT_FALSE(model.tensors().empty()) << entry.path();
    ++models;
  }
  EXPECT_GT(models, 0);
}

}  // namespace
}  // namespace antisd::inline io
