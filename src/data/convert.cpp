#include "data/convert.h"

#include <atomic>
#include <iostream>

#include "core/error.h"
#include "core/thread_pool.h"
#include "data/code_rows.h"
#include "data/row_reader.h"
#include "io/atomic_file.h"
#include "io/jsonl.h"

namespace antisd::inline data {
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
        parquet_(parquet),
        pool_(options.threads - 1) {}

  bool next(Json& row) {
    if (taken_ == batch_.size()) read_batch();
    if (batch_.empty()) return false;
    row = std::move(batch_[taken_++]);
    if (parquet_) store_tests_as_text(row);
    ++result_.rows_written;
    return true;
  }

  const ConvertResult& result() const { return result_; }

 private:
  // Solutions take long to run, so many rows are processed in parallel.
  void read_batch() {
    batch_.clear();
    taken_ = 0;
    for (Json row; batch_.size() < kBatch && reader_.next(row);) {
      ++result_.rows_read;
      if (!convert(row)) {
        ++result_.without_tests;
        continue;
      }
      check_tests(row);
      batch_.push_back(std::move(row));
    }
    result_.notes = parser_.notes();
    if (options_.count_checks && options_.rows != ConvertOptions::Rows::kKeep) record_checks();
  }

  void record_checks() {
    std::atomic<std::int64_t> counted = 0, failed = 0;
    pool_.parallel_for(batch_.size(), [&](std::size_t i) {
      const auto solution = batch_[i].find("solution");
      const auto tests = batch_[i].find("tests");
      if (solution == batch_[i].end() || !solution->is_string() || tests == batch_[i].end() ||
          !tests->is_object() || (*tests)["kind"] == "stdio")
        return;
      const std::optional<int> checks =
          options_.count_checks(solution->get_ref<const std::string&>(), *tests);
      if (checks) (*tests)["checks"] = *checks;
      ++(checks ? counted : failed);
    });
    result_.counted += counted;
    result_.failed_solutions += failed;
  }

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

  void check_tests(Json& row) const {
    if (options_.rows == ConvertOptions::Rows::kKeep) return;
    const auto tests = row.find("tests");
    if (tests != row.end() && !tests->is_null())
      *tests = checked_tests(std::move(*tests), reader_.where());
  }

  // A Parquet column has one type: tests of different kinds are stored as JSON text.
  void store_tests_as_text(Json& row) const {
    if (options_.rows == ConvertOptions::Rows::kKeep) return;
    const auto tests = row.find("tests");
    if (tests != row.end() && !tests->is_null()) *tests = Json(to_json_line(*tests));
  }

  static constexpr std::size_t kBatch = 256;

  RowReader reader_;
  const ConvertOptions& options_;
  ProblemParser parser_;
  bool parquet_;
  ThreadPool pool_;
  std::vector<Json> batch_;
  std::size_t taken_ = 0;
  ConvertResult result_;
};

}  // namespace

ConvertResult convert_data(const std::filesystem::path& input, const std::filesystem::path& output,
                           const ConvertOptions& options) {
  const bool parquet = to_parquet(output);
  std::error_code ignored;
  const bool to_stdout = output == kStandardOutput;
  if (!to_stdout && !options.force && std::filesystem::exists(output, ignored)) {
    throw InputError("the file exists already",
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
  ProblemParser parser(options.map, /*require_answer=*/false);
  RowReader reader(input);
  std::int64_t shown = 0;
  for (Json row; (options.limit == 0 || shown < options.limit) && reader.next(row); ++shown) {
    emit(to_row(parser.parse(row, reader.where(), reader.stem(), reader.row())));
  }
  if (options.notes != nullptr) *options.notes = parser.notes();
  return shown;
}

}  // namespace antisd::inline data
