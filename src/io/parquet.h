// Parquet files as rows of JSON, through a separate library (libantisd_parquet.so, which contains
// Arrow) that is loaded with the first Parquet file; the rest of the program does not need it.
//
//   ParquetReader reader("train.parquet");
//   for (Json row; reader.next(row);) use(row["prompt"]);
//
// Strings and UTF-8 binary become strings; decimals their exact digits as a string; dates, times
// and timestamps ISO 8601 strings; lists arrays; structs objects; maps objects where the keys are
// strings or integers, else arrays of [key, value]. A missing value is null.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "io/json.h"

namespace antisd::inline io {

// Reads rows in batches; its memory does not grow with the file.
class ParquetReader {
 public:
  // InputError for a file that is missing, truncated or not Parquet, and if the library is missing.
  explicit ParquetReader(const std::filesystem::path& path);
  ~ParquetReader();
  ParquetReader(ParquetReader&&) noexcept;
  ParquetReader& operator=(ParquetReader&&) noexcept;

  std::int64_t row_count() const;
  // False at the end; InputError with file, row and column for a value that JSON cannot represent.
  // The next call continues after it, unless the file itself is broken.
  bool next(Json& row);
  std::string where() const;  // "FILE:row N" of the last row, from 1

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Writes the rows that `next_row` yields until it returns false; the file appears complete or not
// at all. The columns are the union of the rows' keys in order of appearance; missing keys are
// null. A column with integers and numbers becomes numbers; any other mix of types is an InputError
// that names the column and two rows. Holds all rows in memory.
void write_parquet(const std::filesystem::path& path, const std::function<bool(Json&)>& next_row);

// By the name (.parquet, .pq) or by the file's first bytes.
bool is_parquet(const std::filesystem::path& path);

}  // namespace antisd::inline io
