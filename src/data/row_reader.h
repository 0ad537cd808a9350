// Rows of a data set from any file: JSONL, CSV, a JSON array of objects (.json), each plain or
// packed with gzip; Parquet; of all files of a data set in a folder or in the Hugging Face cache
// (data/data_source.h); or the problems of a built-in task (data/countdown.h).
//
//   RowReader reader("train.parquet");
//   for (Json row; reader.next(row);) use(row, reader.where());
#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"
#include "io/parquet.h"
#include "io/row_source.h"

namespace antisd::inline data {

class RowReader {
 public:
  // InputError for a missing file or one of another kind. A .json file that does not start with '['
  // is read as JSONL, which many files of that name are.
  explicit RowReader(const std::filesystem::path& source);

  // False at the end; InputError with where() for a row that is not an object.
  bool next(Json& row);
  std::string where() const;                 // "FILE:LINE" or "FILE:row N" of the last row
  std::int64_t row() const { return row_; }  // number of the last row, from 1, without blank lines
  // The file's name without folder and extension, or the data set's name.
  const std::string& stem() const { return stem_; }

 private:
  void open(const std::filesystem::path& path);
  bool next_of_file(Json& row);

  std::vector<std::filesystem::path> files_;
  std::size_t opened_ = 0;  // files so far
  std::filesystem::path path_;
  std::string stem_;
  std::int64_t row_ = 0;
  std::size_t taken_ = 0;  // of array_
  Json array_;             // of a .json file or a built-in task; null otherwise
  std::optional<ParquetReader> parquet_;
  std::unique_ptr<std::istream> text_;  // of rows_, if the text had to be changed
  std::unique_ptr<RowSource> rows_;
};

// JSON text in which the values of the outermost object's members `base_input` and `plus_input` are
// replaced by strings that hold their text. EvalPlus writes integers of any size and Infinity
// there, which Python's json accepts and our JSON values cannot hold.
std::string quote_evalplus_inputs(std::string_view line);

}  // namespace antisd::inline data
