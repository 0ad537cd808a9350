// Rows of a file or stream: JSONL, or CSV where the name ends in .csv; each plain or packed with
// gzip (io/text_source.h).
//
//   RowSource rows("problems.csv.gz");
//   for (Json row; rows.next(row);) use(row, rows.where());
#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <memory>
#include <optional>
#include <string>

#include "io/csv.h"
#include "io/json.h"
#include "io/jsonl.h"

namespace antisd::inline io {

class RowSource {
 public:
  // InputError if the file cannot be opened.
  explicit RowSource(const std::filesystem::path& path);
  // JSONL. Borrows the stream; messages call it `name`, e.g. "standard input".
  RowSource(std::istream& stream, const std::string& name);

  // False at the end. InputError "FILE:LINE: ..." for a bad row; the next call continues behind it
  // unless is_broken(). RunError if reading fails.
  bool next(Json& row);
  // Whether the last error leaves nothing to go on with: damaged gzip data, a file of another
  // format, a CSV file without a usable header.
  bool is_broken() const { return is_broken_; }

  // Whether it holds text that it has read but not given yet: next() then need not wait for all of
  // a row. What the source itself has is not counted.
  bool has_text() const { return text_->rdbuf()->in_avail() > 0; }

  std::string where() const;  // "FILE:LINE" of the last row

 private:
  std::unique_ptr<std::istream> text_;
  std::optional<JsonlReader> jsonl_;  // one of the two
  std::optional<CsvReader> csv_;
  bool is_broken_ = false;
};

}  // namespace antisd::inline io
