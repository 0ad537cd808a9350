// Rows of a CSV file as RFC 4180 has them: a header with the columns' names, then records, whose
// values are all strings.
//
//   const std::unique_ptr<std::istream> stream = open_text("rows.csv");
//   CsvReader reader(*stream, "rows.csv");
//   for (Json row; reader.next(row);) use(row["answer"], reader.where());
//   const CsvText text({"problem", "answer"});
//   const std::string lines = text.header() + text.record({{"problem", "1 + 1"}, {"answer", 2}});
//
// A field in quotes may hold commas, newlines and doubled quotes. Records end with LF, CRLF or CR;
// a byte-order mark and blank lines are skipped. A quote inside a field that does not start with
// one is an ordinary character, as in Python's csv module.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"
#include "io/text_source.h"

namespace antisd::inline io {

inline constexpr std::int64_t kMaxCsvFieldBytes = 100'000'000;
inline constexpr std::int64_t kMaxCsvRecordBytes = std::int64_t{1} << 30;
inline constexpr std::size_t kMaxCsvColumns = 10'000;

class CsvReader {
 public:
  // Borrows the stream; messages call it `name`.
  CsvReader(std::istream& stream, std::string name);
  CsvReader(const CsvReader&) = delete;
  CsvReader& operator=(const CsvReader&) = delete;

  // False at the end. InputError "FILE:LINE: ..." for a bad header or record; the next call
  // continues behind a bad record, and ends behind a bad header or a quote that is never closed.
  bool next(Json& row);

  // Whether the last error leaves nothing that could be read.
  bool is_broken() const { return is_broken_; }
  std::string where() const;                   // "FILE:LINE" of the last record's first line
  std::int64_t line() const { return line_; }  // from 1; 0 before the first

 private:
  enum class End { kField, kRecord, kFile };

  bool read_record(std::vector<std::string>& fields);
  End read_field(std::string& field);
  End read_quoted(std::string& field);
  End end_of_line(int c);
  int take();
  void append(std::string& field, int c);
  void read_header();
  [[noreturn]] void fail(const std::string& what, const std::string& remedy) const;
  [[noreturn]] void give_up(const std::string& what, const std::string& remedy);

  std::istream& stream_;
  std::string name_;
  std::int64_t line_ = 0;          // of the record's start
  std::int64_t next_line_ = 1;     // of the next byte
  std::int64_t record_bytes_ = 0;  // so far
  bool has_nul_ = false;           // in the record
  bool is_blank_ = false;          // the record is an empty line
  bool after_quote_ = false;       // the record has text behind a closing quote
  bool ended_ = false;
  bool is_broken_ = false;
  std::vector<std::string> columns_;
};

// Writes records with LF; quotes where needed. Values that are not text are written as JSON, null
// as nothing.
class CsvText {
 public:
  explicit CsvText(std::vector<std::string> columns) : columns_(std::move(columns)) {}
  std::string header() const;
  // InputError if the row has a column that the header lacks.
  std::string record(const Json& row) const;

 private:
  std::vector<std::string> columns_;
};

}  // namespace antisd::inline io
