// What a user may name as data: a file, a folder with a data set, or the name of a data set in the
// local Hugging Face cache; behind a colon the config and the split.
//
//   find_source("train.jsonl").files;                  // itself
//   find_source("openai/gsm8k").files;                 // main/train-00000-of-00001.parquet
//   find_source("openai/gsm8k@e53f048:main/test");     // a revision, another split
//   pinned_source("openai/gsm8k:test");                // openai/gsm8k@<commit>:main/test
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace antisd::inline data {

struct DataSource {
  std::string text;  // names the same files again later: with revision, config and split
  std::string stem;  // for ids: a file's name without its ending, or gsm8k, gsm8k_test, ...
  std::vector<std::filesystem::path> files;
  bool is_data_set = false;  // not a single file
};

// A path that exists wins over a name. A text that cannot be a data set is a file, which need not
// exist. InputError for a name that the cache does not hold, and as choose_split().
DataSource find_source(const std::string& text);

// The source's `text`; one that cannot be found stays as it is, and is refused where it is read.
std::string pinned_source(const std::string& text);

}  // namespace antisd::inline data
