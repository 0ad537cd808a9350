#include "text/special_tokens.h"

#include <gmock/gmock.h>

#include "core/testing.h"
#include "io/atomic_file.h"

namespace antisd {
namespace {

using ::testing::HasSubstr;
using testing::error_of;

TEST(SpecialTokens, ReadsStringsAndWrittenOutTokens) {
  const testing::TemporaryFolder folder;
  write_file_atomically(folder / "tokenizer_config.json",
                        R"({"bos_token": null, "eos_token": {"content": "</s>", "lstrip": false},
                            "pad_token": "<pad>", "model_max_length": 1e30})");
  write_file_atomically(folder / "special_tokens_map.json",
                        R"({"eos_token": "other", "unk_token": "<unk>"})");
  EXPECT_EQ(to_json_line(named_special_tokens(folder.path())),
            R"({"eos_token":"</s>","pad_token":"<pad>","unk_token":"<unk>"})");
}

TEST(SpecialTokens, NothingWhereNoFileIsThere) {
  const testing::TemporaryFolder folder;
  EXPECT_EQ(named_special_tokens(folder.path()), Json::object());
}

TEST(SpecialTokens, RefusesNonsense) {
  const testing::TemporaryFolder folder;
  write_file_atomically(folder / "tokenizer_config.json", R"({"eos_token": 7})");
  EXPECT_THAT(error_of([&] { named_special_tokens(folder.path()); }), HasSubstr("eos_token is number"));
  write_file_atomically(folder / "tokenizer_config.json", "[]");
  EXPECT_THAT(error_of([&] { named_special_tokens(folder.path()); }), HasSubstr("not a JSON object"));
}

}  // namespace
}  // namespace antisd
