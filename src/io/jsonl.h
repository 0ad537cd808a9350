// Rows of JSON, one object per line: the format of every stream that this program reads and writes.
//
//   JsonlReader reader("rows.jsonl");
//   for (Json row; reader.next(row);) {
//     if (!row.contains("answer")) throw InputError("no answer", {.where = reader.where()});
//   }
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iosfwd>
#include <string>
#include <vector>

#include "io/json.h"

namespace antisd::inline io {

// A longer line is an error, so a file without newlines cannot fill the memory.
inline constexpr std::int64_t kMaxJsonlLineBytes = std::int64_t{1} << 30;

// Blank lines are skipped; a byte-order mark and CRLF are accepted. A row is available as soon as
// its newline has arrived, also from a pipe.
class JsonlReader {
 public:
  // InputError if the file cannot be opened.
  explicit JsonlReader(const std::filesystem::path& path);
  // Borrows the stream; messages call it `name`, e.g. "standard input".
  JsonlReader(std::istream& stream, std::string name);
  JsonlReader(const JsonlReader&) = delete;
  JsonlReader& operator=(const JsonlReader&) = delete;

  // False at the end. InputError "FILE:LINE: ..." for a line that is not one JSON object; the next
  // call continues after it. RunError if reading fails.
  bool next(Json& row);

  std::string where() const;                   // "FILE:LINE" of the last row
  std::int64_t line() const { return line_; }  // of the last row, from 1; 0 before the first

 private:
  bool read_line();

  std::ifstream file_;
  std::istream* stream_;
  std::string name_;
  std::int64_t line_ = 0;
  std::string text_;         // the current line
  std::vector<char> chunk_;  // buffer of one read
};

// One line per row. A failed write (disk full, permission) is a RunError of write(), flush() or
// close(). A file that must be complete or absent is written through AtomicFile.
class JsonlWriter {
 public:
  enum class Mode { kReplace, kAppend };

  explicit JsonlWriter(const std::filesystem::path& path, Mode mode = Mode::kReplace);
  // Borrows the stream.
  JsonlWriter(std::ostream& stream, std::string name);
  ~JsonlWriter();  // flushes without reporting errors; call close() for those
  JsonlWriter(const JsonlWriter&) = delete;
  JsonlWriter& operator=(const JsonlWriter&) = delete;

  void write(const Json& row);
  void flush();
  void close();

 private:
  void check(bool good) const;

  std::ofstream file_;
  std::ostream* stream_;
  std::string name_;
};

}  // namespace antisd::inline io
