#include "data/data_source.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "data/data_card.h"
#include "data/data_set.h"
#include "data/prompt_set.h"
#include "data/row_reader.h"
#include "hub/testing.h"
#include "io/parquet.h"

namespace antisd::inline data {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;

const std::string kDataRepo = "datasets--openai--gsm8k";
const std::string kCommit = "e53f048856ff4f594e959d75785d2c2d37b678ee";

class DataSourceTest : public ::testing::Test {
 protected:
  void add(const std::string& file, const std::string& text = "{\"problem\":\"p\"}\n") {
    cache_.add_file(kDataRepo, kCommit, file, text);
    cache_.add_ref(kDataRepo, "main", kCommit);
  }
  void add_rows(const std::string& file, const std::vector<Json>& rows) {
    const testing::TemporaryFolder folder;
    std::size_t next = 0;
    write_parquet(folder / "x.parquet", [&](Json& row) {
      if (next == rows.size()) return false;
      row = rows[next++];
      return true;
    });
    add(file, read_file(folder / "x.parquet"));
  }
  // "config/split: files" of the snapshot, for comparison.
  std::vector<std::string> splits() const {
    std::vector<std::string> texts;
    for (const DataSplit& split : splits_of(cache_.snapshot(kDataRepo, kCommit))) {
      texts.push_back(split.config + "/" + split.split + ":");
      for (const fs::path& file : split.files)
        texts.back() += " " + file.lexically_relative(cache_.snapshot(kDataRepo, kCommit)).string();
    }
    return texts;
  }

  testing::HubCache cache_;
};

// As the hub shows these layouts; the names on the left are those that its viewer gives.
TEST_F(DataSourceTest, NamesOfFilesTellConfigsAndSplits) {
  add("main/train-00000-of-00002.parquet");
  add("main/train-00001-of-00002.parquet");
  add("main/test-00000-of-00001.parquet");
  add("socratic/train-00000-of-00001.parquet");
  add("data/train_sft-00000-of-00001.parquet");
  add("extra/validation/0000.parquet");
  add("README.md", "# no card\n");
  add("notes.jsonl");  // Parquet is there, so this is not data
  add(".hidden/train.parquet");
  EXPECT_THAT(splits(), ElementsAre("default/train_sft: data/train_sft-00000-of-00001.parquet",
                                    "extra/validation: extra/validation/0000.parquet",
                                    "main/test: main/test-00000-of-00001.parquet",
                                    "main/train: main/train-00000-of-00002.parquet "
                                    "main/train-00001-of-00002.parquet",
                                    "socratic/train: socratic/train-00000-of-00001.parquet"));
}

TEST_F(DataSourceTest, JsonlWithoutParquet) {
  add("gsm8k_test.jsonl");
  add("everything.jsonl");
  add("dev.jsonl");
  add("config.json", "{}");
  EXPECT_THAT(splits(),
              ElementsAre("default/test: gsm8k_test.jsonl", "default/train: everything.jsonl",
                          "default/validation: dev.jsonl"));
}

TEST_F(DataSourceTest, TheCardWins) {
  add("a/first.parquet");
  add("a/second.parquet");
  add("b/all.parquet");
  add("README.md",
      "---\nlicense: mit\nconfigs:\n- config_name: big\n  data_files:\n  - split: train\n"
      "    path:\n    - \"a/fir*\"\n    - a/second.parquet\n- config_name: small\n"
      "  default: true\n  data_files:\n  - split: train\n    path: b/*\n  - split: test\n"
      "    path: not-here/*\ntags:\n- x\n---\n# Text\n- config_name: none\n");
  EXPECT_THAT(splits(), ElementsAre("big/train: a/first.parquet a/second.parquet",
                                    "small/train: b/all.parquet"));
  EXPECT_EQ(find_source("openai/gsm8k").text, "openai/gsm8k@" + kCommit + ":small/train");
  EXPECT_EQ(find_source("openai/gsm8k:big").stem, "gsm8k_big");
}

TEST(DataCard, OtherFormsSayNothing) {
  EXPECT_TRUE(read_card("").empty());
  EXPECT_TRUE(read_card("# README\nconfigs:\n- config_name: a\n").empty());
  EXPECT_TRUE(read_card("---\nconfigs:\n- config_name: a\n  data_files: b\n").empty());  // no end
  EXPECT_TRUE(read_card("---\nconfigs: [{config_name: a}]\n---\n").empty());
  EXPECT_TRUE(read_card("---\nconfigs:\n- {config_name: a, data_files: b}\n---\n").empty());
  const auto one =
      read_card("---\nconfigs:\n  - config_name: a\n    data_files: \"x.jsonl\"\n---\n");
  ASSERT_EQ(one.size(), 1u);
  EXPECT_THAT(one[0].patterns, ElementsAre("x.jsonl"));
}

TEST_F(DataSourceTest, ConfigAndSplitAreChosen) {
  add("main/train-00000-of-00001.parquet");
  add("main/test-00000-of-00001.parquet");
  add("socratic/train-00000-of-00001.parquet");
  add("socratic/test-00000-of-00001.parquet");
  const std::string pinned = "openai/gsm8k@" + kCommit;
  const auto text = [](const std::string& name) { return find_source(name).text; };
  EXPECT_EQ(text("openai/gsm8k"), pinned + ":main/train");
  EXPECT_EQ(text("openai/gsm8k:test"), pinned + ":main/test");
  EXPECT_EQ(text("openai/gsm8k:socratic"), pinned + ":socratic/train");
  EXPECT_EQ(text("openai/gsm8k@e53f048:socratic/test"), pinned + ":socratic/test");
  EXPECT_EQ(text(pinned + ":main/test"), pinned + ":main/test");  // it is stable
  EXPECT_EQ(find_source("openai/gsm8k").stem, "gsm8k");
  EXPECT_EQ(find_source("openai/gsm8k:test").stem, "gsm8k_test");
  EXPECT_EQ(find_source("openai/gsm8k:socratic/test").stem, "gsm8k_socratic_test");
  EXPECT_THAT(error_of([&] { text("openai/gsm8k:dev"); }),
              AllOf(HasSubstr("'dev'"), HasSubstr("main/test, main/train, socratic/test")));
  EXPECT_THAT(error_of([&] { text("openai/gsm8k:main/dev"); }), HasSubstr("no main/dev"));
  // The same from a folder.
  const std::string folder = cache_.snapshot(kDataRepo, kCommit).string();
  EXPECT_EQ(text(folder), folder + ":main/train");
  EXPECT_EQ(find_source(folder + ":socratic/test").stem, "gsm8k_socratic_test");
}

TEST_F(DataSourceTest, SeveralConfigsWithoutADefaultAreListed) {
  add("algebra/train-00000-of-00001.parquet");
  add("geometry/train-00000-of-00001.parquet");
  EXPECT_THAT(error_of([] { find_source("openai/gsm8k"); }),
              AllOf(HasSubstr("none is its default"), HasSubstr("algebra/train, geometry/train"),
                    HasSubstr("openai/gsm8k:algebra/train")));
  EXPECT_EQ(find_source("openai/gsm8k:geometry").files.size(), 1u);
  EXPECT_EQ(pinned_source("openai/gsm8k"), "openai/gsm8k");  // left for the reader to refuse
}

TEST_F(DataSourceTest, WhatIsNotThereIsSaid) {
  EXPECT_THAT(error_of([] { find_source("openai/gsm8k:main/test"); }),
              AllOf(HasSubstr("no such folder"), HasSubstr("datasets--openai--gsm8k"),
                    HasSubstr("`antisd fetch openai/gsm8k --type dataset`"),
                    HasSubstr("`hf download openai/gsm8k --repo-type dataset`")));
  EXPECT_THAT(error_of([] { RowReader("data/missing.jsonl"); }),
              HasSubstr("no such file"));  // a file's name
  const testing::TemporaryFolder empty;
  EXPECT_THAT(error_of([&] { find_source(empty.path().string()); }), HasSubstr("holds no Parquet"));
}

TEST_F(DataSourceTest, RowsOfAllFilesAreOneDataSet) {
  add_rows("data/train-00000-of-00002.parquet", {{{"question", "1+1?"}, {"answer", "Two.\n#### 2"}},
                                                 {{"question", "2+2?"}, {"answer", "#### 4"}}});
  add_rows("data/train-00001-of-00002.parquet",
           {{{"question", "500*2?"}, {"answer", "It is\n#### 1,000"}}});
  PromptSetReport report;
  const PromptSet set = PromptSet::load({.files = {"openai/gsm8k"}}, &report);
  ASSERT_EQ(set.size(), 3u);
  EXPECT_EQ(set[0].id, "gsm8k-1");
  EXPECT_EQ(set[0].solution, "Two.\n#### 2");
  EXPECT_EQ(set[2].id, "gsm8k-3");
  EXPECT_EQ(set[2].problem, "500*2?");
  EXPECT_EQ(set[2].answer, "1000");
  EXPECT_EQ(set[2].source, "gsm8k");
  EXPECT_THAT(report.notes, ElementsAre("gsm8k: the text behind #### is read as answer",
                                        "gsm8k: question is read as problem"));
  EXPECT_THAT(report.text(), HasSubstr("question is read as problem"));
}

}  // namespace
}  // namespace antisd::inline data
