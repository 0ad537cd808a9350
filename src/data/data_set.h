// Data sets as the Hugging Face hub keeps them: a folder with the files of one or several
// configurations, each with its splits.
//
//   const DataSplit split = choose_split(folder, "main/test", "openai/gsm8k");
//   for (const std::filesystem::path& file : split.files) ...
//
// The card of the data set says which files are what (data/data_card.h). Without one their names
// do: main/train-00000-of-00001.parquet is the split `train` of `main`, and data/train.jsonl that
// of `default`. A file whose name tells nothing belongs to `train`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace antisd::inline data {

struct DataSplit {
  std::string config, split;
  std::vector<std::filesystem::path> files = {};  // in the order of their names
  bool is_default = false;                        // the card says so of the config
};

// All splits of a folder, by name. Parquet files if it has some, else JSONL, else JSON.
std::vector<DataSplit> splits_of(const std::filesystem::path& folder);

// `selection`: CONFIG/SPLIT, one of the two, or empty. The config is then `default`, the card's, or
// `main`, and the split is `train`; what is the only one needs no name. InputError with the choices
// where that names none or several; `where` is what the user wrote.
DataSplit choose_split(const std::filesystem::path& folder, const std::string& selection,
                       const std::string& where);

}  // namespace antisd::inline data
