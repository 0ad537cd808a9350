#include "data/convert.h"

#include <iostream>

#include "core/error.h"
#include "data/code_rows.h"
#include "data/row_reader.h"
#include "io/atomic_file.h"
#include "io/jsonl.h"

namespace antisd {
namespace {

bool to_parquet(const std::filesystem::path& output) {
  if (output == kStandardOutput) return false;
  const std::string ending = output.extension().string();
  if (ending == ".parquet" || ending == ".pq") return true;
  if (ending == ".jsonl") return false;
  throw InputError(fmt::format("cannot tell the format from the ending '{}'", ending),
                   {.where = output.string(), .remedy = "name the output .jsonl or .parquet"});
}

class Converter {
 public:
  Converter(const std::filesystem::path& input, const ConvertOptions& options, bool parquet)
      : reader_(input),
        options_(options),
        parser_(options.map, /*require_answer=*/false),
        parquet_(parquet) {}

  bool next(Json& row) {
    while (reader_.next(row)) {
      ++result_.rows_read;
      if (!convert(row)) {
        ++result_.without_tests;
        continue;
      }
      store_tests(row);
      ++result_.rows_written;
      return true;
    }
    return false;
  }

  const ConvertResult& result() const { return result_; }

 private:
  bool convert(Json& row) {
    using Rows = ConvertOptions::Rows;
    if (options_.rows == Rows::kKeep) return true;
    const bool mapped = !options_.map.empty();
    if (options_.rows == Rows::kCode || (!mapped && is_raw_code_row(row))) {
      std::optional<Json> native =
          native_code_row(row, reader_.where(), reader_.stem(),
                          fmt::format("{}-{}", reader_.stem(), reader_.row()));
      if (!native) return false;
      row = std::move(*native);
    } else if (mapped || is_verl_row(row)) {
      row = to_row(parser_.parse(row, reader_.where(), reader_.stem(), reader_.row()));
    }
    return true;
  }

  // A Parquet column has one type: tests of several kinds lie in it as JSON text.
  void store_tests(Json& row) const {
    if (options_.rows == ConvertOptions::Rows::kKeep) return;
    const auto tests = row.find("tests");
    if (tests == row.end() || tests->is_null()) return;
    Json checked = checked_tests(std::move(*tests), reader_.where());
    *tests = parquet_ ? Json(to_json_line(checked)) : std::move(checked);
  }

  RowReader reader_;
  const ConvertOptions& options_;
  ProblemParser parser_;
  bool parquet_;
  ConvertResult result_;
};

}  // namespace

ConvertResult convert_data(const std::filesystem::path& input, const std::filesystem::path& output,
                           const ConvertOptions& options) {
  const bool parquet = to_parquet(output);
  std::error_code ignored;
  const bool to_stdout = output == kStandardOutput;
  if (!to_stdout && !options.force && std::filesystem::exists(output, ignored)) {
    throw InputError("the file is there already",
                     {.where = output.string(), .remedy = "give another name, or --force"});
  }
  Converter converter(input, options, parquet);
  const auto check_any = [&] {
    if (converter.result().rows_written > 0) return;
    throw InputError(
        converter.result().rows_read == 0 ? "the file has no rows" : "none of the rows has tests",
        {.where = input.string(), .remedy = "give a file with rows to convert"});
  };
  if (parquet) {
    write_parquet(output, [&](Json& row) {
      if (converter.next(row)) return true;
      check_any();
      return false;
    });
    return converter.result();
  }
  if (to_stdout) {
    JsonlWriter writer(std::cout, "standard output");
    for (Json row; converter.next(row);)
      writer.write(row);
    check_any();
    writer.flush();
    return converter.result();
  }
  AtomicFile file(output);
  for (Json row; converter.next(row);)
    file.write(to_json_line(row) + "\n");
  check_any();
  file.commit();
  return converter.result();
}

std::int64_t show_data(const std::filesystem::path& input, const ShowOptions& options,
                       const std::function<void(const Json&)>& emit) {
  const ProblemParser parser(options.map, /*require_answer=*/false);
  RowReader reader(input);
  std::int64_t shown = 0;
  for (Json row; (options.limit == 0 || shown < options.limit) && reader.next(row); ++shown) {
    emit(to_row(parser.parse(row, reader.where(), reader.stem(), reader.row())));
  }
  return shown;
}

}  // namespace antisd
