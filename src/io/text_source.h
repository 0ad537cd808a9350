// The text of a file or stream as a stream of bytes: what is packed with gzip is unpacked on the
// way, whatever the file's name says, and files of other known formats are refused by their name.
//
//   const std::unique_ptr<std::istream> text = open_text("rows.jsonl.gz");
//   for (std::string line; std::getline(*text, line);) use(line);
//
// Nothing is read ahead of what has arrived, so a program at the other end of a pipe gets its
// answers. Memory does not grow with the file.
#pragma once

#include <filesystem>
#include <istream>
#include <memory>
#include <streambuf>
#include <string>
#include <vector>

#include "core/error.h"

namespace antisd::inline io {

// A packed line that is longer counts as an attack: a megabyte of gzip can hold a gigabyte.
inline constexpr std::int64_t kMaxUnpackedLineBytes = std::int64_t{100} << 20;

// Data in another format or damaged gzip data: nothing behind it can be read.
class DamagedText : public InputError {
 public:
  using InputError::InputError;
};

class TextSource : public std::streambuf {
 public:
  // Borrows the buffer; messages call it `name`.
  TextSource(std::streambuf& bytes, std::string name);
  ~TextSource() override;
  TextSource(const TextSource&) = delete;
  TextSource& operator=(const TextSource&) = delete;

 protected:
  // DamagedText; RunError if reading fails.
  int_type underflow() override;
  std::streamsize showmanyc() override;

 private:
  struct Inflater;
  std::size_t read_bytes(char* to, std::size_t most);
  void look_at_the_start();
  std::size_t unpack();
  void check_unpacked(std::string_view text, bool is_first);

  std::streambuf& bytes_;
  std::string name_;
  bool started_ = false;
  std::string start_;                   // bytes read to tell the format, not passed on yet
  std::unique_ptr<Inflater> inflater_;  // if the bytes are gzip's
  std::int64_t line_bytes_ = 0;         // unpacked since the last newline
  std::vector<char> text_;
};

// A stream that passes on the errors of a TextSource. InputError if the file cannot be opened.
std::unique_ptr<std::istream> open_text(const std::filesystem::path& path);
// Borrows the stream.
std::unique_ptr<std::istream> open_text(std::istream& stream, const std::string& name);

// The whole text of a file, unpacked. InputError if it is longer than kMaxTextFileBytes.
std::string read_text(const std::filesystem::path& path);

// The path without a last ".gz".
std::filesystem::path without_gz(const std::filesystem::path& path);

}  // namespace antisd::inline io
