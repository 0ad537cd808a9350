#include "io/csv.h"

#include <algorithm>
#include <streambuf>
#include <unordered_set>

#include <fmt/format.h>

#include "core/error.h"
#include "core/utf8.h"

namespace antisd::inline io {
namespace {

constexpr int kEndOfFile = std::char_traits<char>::eof();
constexpr std::string_view kMark = "\xEF\xBB\xBF";

std::string quoted(const std::string& value, bool is_only) {
  const bool needs = value.find_first_of(",\"\r\n") != std::string::npos ||
                     value.starts_with(kMark) || (value.empty() && is_only);
  if (!needs) return value;
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"') text += '"';
    text += c;
  }
  return text + '"';
}

}  // namespace

CsvReader::CsvReader(std::istream& stream, std::string name)
    : stream_(stream), name_(std::move(name)) {}

std::string CsvReader::where() const {
  return fmt::format("{}:{}", name_, line_);
}

void CsvReader::fail(const std::string& what, const std::string& remedy) const {
  throw InputError(what, {.where = where(), .remedy = remedy});
}

// For errors behind which no record can be found.
void CsvReader::give_up(const std::string& what, const std::string& remedy) {
  ended_ = is_broken_ = true;
  fail(what, remedy);
}

int CsvReader::take() {
  return stream_.rdbuf()->sbumpc();
}

void CsvReader::append(std::string& field, int c) {
  if (c == 0) has_nul_ = true;
  field += static_cast<char>(c);
  if (static_cast<std::int64_t>(field.size()) > kMaxCsvFieldBytes) {
    give_up(fmt::format("a field of more than {} bytes", kMaxCsvFieldBytes),
            "close the quote of the field, if it has one");
  }
  if (++record_bytes_ > kMaxCsvRecordBytes) {
    give_up(fmt::format("a record of more than {} bytes", kMaxCsvRecordBytes), "make it shorter");
  }
}

// `c` is CR or LF; CRLF is one end.
CsvReader::End CsvReader::end_of_line(int c) {
  if (c == '\r' && stream_.rdbuf()->sgetc() == '\n') take();
  ++next_line_;
  return End::kRecord;
}

// Behind the opening quote.
CsvReader::End CsvReader::read_quoted(std::string& field) {
  while (true) {
    int c = take();
    if (c == kEndOfFile) give_up("the quote of a field is not closed", "close it with a quote");
    if (c == '"' && stream_.rdbuf()->sgetc() != '"') break;
    if (c == '"') take();
    if (c == '\n' || (c == '\r' && stream_.rdbuf()->sgetc() != '\n')) ++next_line_;
    append(field, c);
  }
  while (true) {
    const int c = take();
    if (c == ',') return End::kField;
    if (c == '\r' || c == '\n') return end_of_line(c);
    if (c == kEndOfFile) return End::kFile;
    after_quote_ = true;
  }
}

CsvReader::End CsvReader::read_field(std::string& field) {
  int c = take();
  if (c == '"') return read_quoted(field);
  for (;; c = take()) {
    if (c == ',') return End::kField;
    if (c == '\r' || c == '\n') return end_of_line(c);
    if (c == kEndOfFile) return End::kFile;
    append(field, c);
  }
}

// False at the end of the file.
bool CsvReader::read_record(std::vector<std::string>& fields) {
  fields.clear();
  line_ = next_line_;
  record_bytes_ = 0;
  has_nul_ = after_quote_ = false;
  if (stream_.rdbuf()->sgetc() == kEndOfFile) return false;
  const int first = stream_.rdbuf()->sgetc();
  for (End end = End::kField; end == End::kField;) {
    if (fields.size() > kMaxCsvColumns && !columns_.empty()) {
      std::string ignored;  // one more field is enough to refuse the record
      end = read_field(ignored);
      continue;
    }
    if (columns_.empty() && fields.size() >= kMaxCsvColumns)
      give_up(fmt::format("more than {} columns", kMaxCsvColumns),
              "is it a CSV file with a header?");
    end = read_field(fields.emplace_back());
  }
  is_blank_ = fields.size() == 1 && fields[0].empty() && first != '"';
  return true;
}

void CsvReader::read_header() {
  std::vector<std::string> fields;
  std::streambuf& bytes = *stream_.rdbuf();
  std::string mark;
  for (std::size_t i = 0; i < kMark.size() && bytes.sgetc() == static_cast<unsigned char>(kMark[i]);
       ++i)
    mark += static_cast<char>(bytes.sbumpc());
  do {
    if (!read_record(fields)) {
      ended_ = true;
      return;
    }
  } while (is_blank_);
  if (!mark.empty() && mark != kMark) fields[0].insert(0, mark);
  const char* const remedy = "the first line names the columns";
  if (has_nul_) give_up("the header has NUL bytes", "is it a text file?");
  if (after_quote_) give_up("text follows the closing quote of a column's name", remedy);
  std::unordered_set<std::string_view> seen;
  for (const std::string& field : fields) {
    if (find_invalid_utf8(field)) give_up("the header is not valid UTF-8", "save it as UTF-8");
    if (!seen.insert(field).second)
      give_up(fmt::format("two columns are named '{}'", field), remedy);
  }
  columns_ = std::move(fields);
}

bool CsvReader::next(Json& row) {
  if (columns_.empty() && !ended_) read_header();
  if (ended_) return false;
  std::vector<std::string> fields;
  do {
    if (!read_record(fields)) {
      ended_ = true;
      return false;
    }
  } while (is_blank_);
  if (has_nul_) fail("the record has NUL bytes", "remove them");
  if (after_quote_) {
    fail("text follows the closing quote of a field",
         "double the quotes inside of a field: \"he said \"\"yes\"\"\"");
  }
  if (fields.size() != columns_.size()) {
    fail(fmt::format("{} field{} where the header has {}",
                     fields.size() > kMaxCsvColumns ? fmt::format("over {}", kMaxCsvColumns)
                                                    : std::to_string(fields.size()),
                     fields.size() == 1 ? "" : "s", columns_.size()),
         "put fields with commas, quotes or newlines in quotes");
  }
  row = Json::object();
  auto& members = row.get_ref<Json::object_t&>();
  members.reserve(fields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (find_invalid_utf8(fields[i]))
      fail(fmt::format("'{}' is not valid UTF-8", columns_[i]), "save the file as UTF-8");
    // The names differ, so that the object need not look for each among those before it.
    static_cast<Json::object_t::Container&>(members).emplace_back(columns_[i],
                                                                  std::move(fields[i]));
  }
  return true;
}

std::string CsvText::header() const {
  std::string text;
  for (std::size_t i = 0; i < columns_.size(); ++i)
    text += (i == 0 ? "" : ",") + quoted(columns_[i], columns_.size() == 1);
  return text + "\n";
}

std::string CsvText::record(const Json& row) const {
  for (const auto& [key, _] : row.items()) {
    if (std::find(columns_.begin(), columns_.end(), key) != columns_.end()) continue;
    throw InputError(fmt::format("the row has '{}', which the first row lacks", key),
                     {.remedy = "write rows of different columns as .jsonl"});
  }
  std::string text;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const auto value = row.find(columns_[i]);
    if (i > 0) text += ',';
    std::string field;
    if (value != row.end() && !value->is_null())
      field = value->is_string() ? value->get<std::string>() : to_json_line(*value);
    text += quoted(field, columns_.size() == 1);
  }
  return text + "\n";
}

}  // namespace antisd::inline io
