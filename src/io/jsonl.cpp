#include "io/jsonl.h"

#include <cerrno>
#include <istream>
#include <new>
#include <ostream>

#include <fmt/format.h>

#include "core/error.h"
#include "io/system_error.h"

namespace antisd::inline io {
namespace {

constexpr std::size_t kChunkBytes = 1 << 16;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\v\f") == std::string_view::npos;
}

// If memory runs out, the error names this line.
void append(std::string& text, std::string_view more, std::int64_t& line) {
  try {
    text.append(more);
  } catch (const std::bad_alloc&) {
    ++line;
    throw;
  }
}

}  // namespace

JsonlReader::JsonlReader(const std::filesystem::path& path)
    : stream_(&file_), name_(path.string()), chunk_(kChunkBytes) {
  // Opening a folder succeeds; only the first read fails.
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw_cannot_read(path, EISDIR);
  errno = 0;
  file_.open(path, std::ios::binary);
  if (!file_) throw_cannot_read(path, errno);
}

JsonlReader::JsonlReader(std::istream& stream, std::string name)
    : stream_(&stream), name_(std::move(name)), chunk_(kChunkBytes) {}

bool JsonlReader::read_line() {
  text_.clear();
  bool too_long = false;
  while (true) {
    errno = 0;
    stream_->getline(chunk_.data(), static_cast<std::streamsize>(chunk_.size()));
    if (stream_->bad()) {
      throw RunError("cannot be read further: " + system_problem(errno),
                     {.where = where(), .remedy = system_remedy(errno)});
    }
    const bool at_end = stream_->eof();
    const bool chunk_full = !at_end && stream_->fail();
    const std::size_t count = static_cast<std::size_t>(stream_->gcount());
    // getline's count includes the newline it removed.
    const std::size_t length = at_end || chunk_full ? count : count - 1;
    if (text_.size() + length > static_cast<std::size_t>(kMaxJsonlLineBytes)) {
      too_long = true;
      text_.clear();
    }
    if (!too_long) append(text_, {chunk_.data(), length}, line_);
    if (chunk_full) {
      stream_->clear(stream_->rdstate() & ~std::ios::failbit);
      continue;
    }
    if (at_end && text_.empty() && !too_long) return false;
    break;
  }
  ++line_;
  if (too_long) {
    throw InputError(fmt::format("a line longer than {} bytes", kMaxJsonlLineBytes),
                     {.where = where(), .remedy = "write one JSON object per line"});
  }
  // Concatenated files have a mark in the middle too.
  if (text_.starts_with(kByteOrderMark)) text_.erase(0, kByteOrderMark.size());
  return true;
}

bool JsonlReader::next(Json& row) try {
  while (stream_->good()) {
    if (!read_line()) return false;
    if (is_blank(text_)) continue;
    row = parse_json(text_, where());
    if (!row.is_object()) {
      throw InputError(fmt::format("a JSON {} where an object is expected", row.type_name()),
                       {.where = where(), .remedy = "write one JSON object per line"});
    }
    return true;
  }
  return false;
} catch (const std::bad_alloc&) {
  text_ = std::string();  // leaves memory for the message
  row = nullptr;
  throw RunError("out of memory while the row was read",
                 {.where = where(), .remedy = "make it shorter or free some memory"});
}

std::string JsonlReader::where() const {
  return fmt::format("{}:{}", name_, line_);
}

JsonlWriter::JsonlWriter(const std::filesystem::path& path, Mode mode)
    : stream_(&file_), name_(path.string()) {
  errno = 0;
  file_.open(path, std::ios::binary | (mode == Mode::kAppend ? std::ios::app : std::ios::trunc));
  if (!file_) throw_cannot_write(path, errno);
}

JsonlWriter::JsonlWriter(std::ostream& stream, std::string name)
    : stream_(&stream), name_(std::move(name)) {}

JsonlWriter::~JsonlWriter() {
  try {
    stream_->flush();
  } catch (...) {  // callers that need to know call close()
  }
}

void JsonlWriter::write(const Json& row) {
  errno = 0;
  const std::string text = to_json_line(row);
  stream_->write(text.data(), static_cast<std::streamsize>(text.size())).put('\n');
  check(stream_->good());
}

void JsonlWriter::flush() {
  errno = 0;
  stream_->flush();
  check(stream_->good());
}

void JsonlWriter::close() {
  flush();
  if (stream_ != &file_) return;
  file_.close();
  check(file_.good());
}

void JsonlWriter::check(bool good) const {
  if (!good) throw_cannot_write(name_, errno);
}

}  // namespace antisd::inline io
