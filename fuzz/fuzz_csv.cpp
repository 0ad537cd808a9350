// libFuzzer: the bytes of a CSV file, plain or packed. The reader reaches the end whatever they
// are, its rows have the header's columns, and rows that are written are read again as they were.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <sstream>

#include "core/error.h"
#include "io/csv.h"
#include "io/text_source.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// The rows; an error is a null.
std::vector<antisd::Json> rows_of(const std::string& text) {
  std::istringstream stream(text);
  antisd::CsvReader reader(stream, "fuzz");
  std::vector<antisd::Json> rows;
  for (std::size_t calls = 0;; ++calls) {
    require(calls <= text.size() + 1 &&
            reader.line() <= static_cast<std::int64_t>(text.size()) + 1);
    antisd::Json row;
    try {
      if (!reader.next(row)) return rows;
    } catch (const antisd::InputError&) {
      row = nullptr;
    }
    rows.push_back(std::move(row));
  }
}

std::string unpacked(const std::string& bytes) {
  std::istringstream stream(bytes);
  try {
    const auto text = antisd::open_text(stream, "fuzz");
    std::ostringstream out;
    out << text->rdbuf();
    return out.str();
  } catch (const antisd::InputError&) {
    return "";
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  std::vector<antisd::Json> rows = rows_of(bytes);
  rows_of(unpacked(bytes));
  std::erase(rows, antisd::Json());
  if (rows.empty()) return 0;
  std::vector<std::string> columns;
  for (const auto& [key, _] : rows[0].items())
    columns.push_back(key);
  const antisd::CsvText text(columns);
  std::string again = text.header();
  for (const antisd::Json& row : rows) {
    require(row.size() == columns.size());
    again += text.record(row);
  }
  require(rows_of(again) == rows);
  return 0;
}
