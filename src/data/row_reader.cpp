#include "data/row_reader.h"

#include <sstream>

#include "core/error.h"
#include "data/countdown.h"
#include "data/data_source.h"
#include "io/text_source.h"

namespace antisd::inline data {
namespace {

// The end of the JSON value that starts at `position`, or of the text if it is not closed. The
// value may be invalid: the parser reports that.
std::size_t end_of_value(std::string_view text, std::size_t position) {
  int depth = 0;
  bool in_string = false;
  for (; position < text.size(); ++position) {
    const char c = text[position];
    if (in_string) {
      if (c == '\\') {
        ++position;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      if (depth-- == 0) return position;
    } else if (c == ',' && depth == 0) {
      return position;
    }
  }
  return text.size();
}

bool starts_with_array(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;  // a pipe is read only once
  const std::unique_ptr<std::istream> text = open_text(path);
  char c = 0;
  while (text->get(c)) {
    // Skips white space and the bytes of a byte-order mark.
    if (std::string_view(" \t\r\n\xEF\xBB\xBF").find(c) == std::string_view::npos) return c == '[';
  }
  return false;
}

// The first line shows whether the file is EvalPlus's; all its rows have the same columns.
bool holds_evalplus_rows(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;  // a pipe is read only once
  const std::unique_ptr<std::istream> text = open_text(path);
  std::string line;
  constexpr std::size_t kPeekBytes = 1 << 24;
  for (char c; line.size() < kPeekBytes && text->get(c) && c != '\n';)
    line += c;
  return line.find("\"plus_input\":") != std::string::npos;
}

std::string quote_lines(std::string_view text) {
  std::string quoted;
  quoted.reserve(text.size() + text.size() / 4);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    quoted += quote_evalplus_inputs(text.substr(0, end));
    quoted += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return quoted;
}

}  // namespace

std::string quote_evalplus_inputs(std::string_view line) {
  std::string quoted;
  std::size_t position = line.find('{');
  if (position == std::string_view::npos) return std::string(line);
  quoted.append(line.substr(0, ++position));
  while (position < line.size()) {
    // One member: its key and colon, then its value up to the comma or closing brace.
    const std::size_t open = line.find('"', position);
    std::size_t close = open;
    if (open != std::string_view::npos) {
      close = line.find('"', open + 1);
      while (close != std::string_view::npos && line[close - 1] == '\\') {
        close = line.find('"', close + 1);
      }
    }
    const std::size_t colon =
        close == std::string_view::npos ? close : line.find_first_not_of(" \t", close + 1);
    if (colon == std::string_view::npos || line[colon] != ':') break;
    const std::size_t value = line.find_first_not_of(" \t", colon + 1);
    if (value == std::string_view::npos) break;
    const std::size_t end = end_of_value(line, value);
    const std::string_view key = line.substr(open + 1, close - open - 1);
    quoted.append(line.substr(position, value - position));
    const std::string_view text = line.substr(value, end - value);
    if ((key == "base_input" || key == "plus_input") && !text.starts_with('"')) {
      quoted += to_json_line(Json(std::string(text)));
    } else {
      quoted.append(text);
    }
    position = end;
    if (position < line.size() && line[position] == ',') {
      quoted += ',';
      ++position;
    } else {
      break;
    }
  }
  if (position < line.size()) quoted.append(line.substr(position));
  return quoted;
}

RowReader::RowReader(const std::filesystem::path& source) {
  DataSource found = find_source(source.string());
  stem_ = std::move(found.stem);
  files_ = std::move(found.files);
  open(files_[opened_++]);
}

void RowReader::open(const std::filesystem::path& path) {
  path_ = path;
  array_ = Json();
  taken_ = 0;
  parquet_.reset();
  rows_.reset();
  text_.reset();
  std::error_code ignored;
  if (is_countdown_source(path.native())) {
    const CountdownSource source = CountdownSource::parse(path.string());
    stem_ = source.name();
    array_ = countdown_rows(source);
  } else if (std::filesystem::is_regular_file(path, ignored) && is_parquet(path)) {
    parquet_.emplace(path);
  } else if (without_gz(path).extension() == ".json" && starts_with_array(path)) {
    array_ = parse_json(read_text(path), path.string());
  } else if (without_gz(path).extension() != ".csv" && holds_evalplus_rows(path)) {
    text_ = std::make_unique<std::istringstream>(quote_lines(read_text(path)));
    rows_ = std::make_unique<RowSource>(*text_, path.string());
  } else {
    rows_ = std::make_unique<RowSource>(path);
  }
}

bool RowReader::next(Json& row) {
  while (!next_of_file(row)) {
    if (opened_ == files_.size()) return false;
    open(files_[opened_++]);
  }
  return true;
}

bool RowReader::next_of_file(Json& row) {
  if (parquet_) {
    if (!parquet_->next(row)) return false;
    ++row_;
    return true;
  }
  if (rows_) {
    if (!rows_->next(row)) return false;
    ++row_;
    return true;
  }
  if (taken_ == array_.size()) return false;
  row = std::move(array_[taken_++]);
  ++row_;
  if (!row.is_object()) {
    throw InputError(fmt::format("a JSON {} where an object is expected", row.type_name()),
                     {.where = where(), .remedy = "write an array of objects"});
  }
  return true;
}

std::string RowReader::where() const {
  if (parquet_) return parquet_->where();
  if (rows_) return rows_->where();
  return fmt::format("{}:row {}", path_.string(), taken_);
}

}  // namespace antisd::inline data
