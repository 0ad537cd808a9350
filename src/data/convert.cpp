#include "data/convert.h"

#include <atomic>
#include <iostream>

#include "core/error.h"
#include "core/thread_pool.h"
#include "data/code_rows.h"
#include "data/row_reader.h"
#include "io/atomic_file.h"
#include "io/csv.h"
#include "io/gzip_writer.h"
#include "io/jsonl.h"
#include "io/text_source.h"

namespace antisd::inline data {
namespace {

enum class TargetFormat { kJsonl, kCsv, kParquet };

TargetFormat format_of(const std::filesystem::path& output) {
  if (output == kStandardOutput) return TargetFormat::kJsonl;
  const std::string ending = output.extension().string();
  if (ending == ".parquet" || ending == ".pq") return TargetFormat::kParquet;
  const std::string inner = without_gz(output).extension().string();
  if (inner == ".jsonl") return TargetFormat::kJsonl;
  if (inner == ".csv") return TargetFormat::kCsv;
  throw InputError(fmt::format("cannot tell the format from the ending '{}'", ending),
                   {.where = output.string(),
                    .remedy = "name the output .jsonl, .csv or .parquet; .jsonl.gz or .csv.gz"});
}

class Converter {
 public:
  Converter(const std::filesystem::path& input, const ConvertOptions& options, TargetFormat target)
      : reader_(input),
        options_(options),
        parser_(options.map, /*require_answer=*/false),
        flat_(target != TargetFormat::kJsonl),
        pool_(options.threads - 1) {}

  bool next(Json& row) {
    if (taken_ == batch_.size()) read_batch();
    if (batch_.empty()) return false;
    row = std::move(batch_[taken_++]);
    if (flat_) store_tests_as_text(row);
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

  // Tests of different kinds are stored as JSON text where a column has one type.
  void store_tests_as_text(Json& row) const {
    if (options_.rows == ConvertOptions::Rows::kKeep) return;
    const auto tests = row.find("tests");
    if (tests != row.end() && !tests->is_null()) *tests = Json(to_json_line(*tests));
  }

  static constexpr std::size_t kBatch = 256;

  RowReader reader_;
  const ConvertOptions& options_;
  ProblemParser parser_;
  bool flat_;  // a column of the target has one type
  ThreadPool pool_;
  std::vector<Json> batch_;
  std::size_t taken_ = 0;
  ConvertResult result_;
};

// JSONL or CSV, packed if the name ends in .gz.
class TextTarget {
 public:
  TextTarget(const std::filesystem::path& path, TargetFormat format)
      : file_(path), format_(format) {
    if (path.extension() == ".gz")
      packed_.emplace([this](std::string_view bytes) { file_.write(bytes); });
  }

  void write(const Json& row) {
    if (format_ == TargetFormat::kJsonl) return write_text(to_json_line(row) + "\n");
    if (!csv_) {
      std::vector<std::string> columns;
      for (const auto& [key, _] : row.items())
        columns.push_back(key);
      csv_.emplace(std::move(columns));
      write_text(csv_->header());
    }
    write_text(csv_->record(row));
  }

  void commit() {
    if (packed_) packed_->finish();
    file_.commit();
  }

 private:
  void write_text(std::string_view text) { packed_ ? packed_->write(text) : file_.write(text); }

  AtomicFile file_;
  const TargetFormat format_;
  std::optional<GzipWriter> packed_;
  std::optional<CsvText> csv_;  // with the columns of the first row
};

}  // namespace

ConvertResult convert_data(const std::filesystem::path& input, const std::filesystem::path& output,
                           const ConvertOptions& options) {
  const TargetFormat target = format_of(output);
  std::error_code ignored;
  const bool to_stdout = output == kStandardOutput;
  if (!to_stdout && !options.force && std::filesystem::exists(output, ignored)) {
    throw InputError("the file exists already",
                     {.where = output.string(), .remedy = "give another name, or --force"});
  }
  Converter converter(input, options, target);
  const auto check_any = [&] {
    if (converter.result().rows_written > 0) return;
    throw InputError(
        converter.result().rows_read == 0 ? "the file has no rows" : "none of the rows has tests",
        {.where = input.string(), .remedy = "give a file with rows to convert"});
  };
  if (target == TargetFormat::kParquet) {
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
  TextTarget file(output, target);
  for (Json row; converter.next(row);)
    file.write(row);
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
