// The model and the data of `quickstart`: where they lie, and which problems are held out.
//
//   const std::filesystem::path model = find_quick_model("Qwen3-0.6B");
//   const QuickData data = find_quick_data("problems.jsonl");
//   const QuickSplit split = split_quick_data(data, {.folder = "runs/quickstart/data"});
//   split.write();
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/option_set.h"

namespace antisd::inline cli {

// The folder of a model that is given as a path or by its name in the local Hugging Face cache.
// InputError "no such folder" with the command that fetches it, and with what works without.
std::filesystem::path find_quick_model(const std::string& name);

// Files of a data set; without a test split `test` is empty.
struct QuickData {
  std::string name;
  std::vector<std::string> train, test;
};

// A file, a folder with a data set, the name of one in the cache (data/data_source.h), or the
// built-in task (countdown:3). InputError as above if there is no file to train on.
QuickData find_quick_data(const std::string& name);

struct QuickSplitOptions {
  std::filesystem::path folder;  // of the files that write() makes
  std::int64_t held_out = 128;   // problems at most; without a test split a fifth of all at most
  StringMap map = {};            // data.map
};

struct QuickSplit {
  std::vector<std::string> train;  // data.train
  std::string bench;               // of eval.benches
  std::string kind;                // reward.kind: math, code or countdown; "" if rows have neither
  std::string text;                // what was held out, in words

  // Makes the files of `train` and `bench` that are ours. RunError.
  void write() const;
  std::vector<std::pair<std::filesystem::path, std::string>> files;  // and what they hold
};

// Which problems are held out depends on their texts alone: the same ones every time, in any order
// of the rows, and equal texts stay on one side. InputError for fewer than two different problems.
QuickSplit split_quick_data(const QuickData& data, const QuickSplitOptions& options);

}  // namespace antisd::inline cli
