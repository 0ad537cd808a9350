#include "cli/weights/quick_data.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include <fmt/format.h>

#include "core/error.h"
#include "data/countdown.h"
#include "data/normalise.h"
#include "data/problem.h"
#include "data/row_reader.h"
#include "io/atomic_file.h"
#include "io/checksum.h"
#include "io/json.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;

// "Qwen/Qwen3-0.6B": one slash, no dot or slash in front.
bool looks_like_a_hub_name(const std::string& name) {
  return std::ranges::count(name, '/') == 1 && !name.starts_with('.') && !name.starts_with('/') &&
         !name.ends_with('/') && fs::path(name).extension() != ".jsonl";
}

bool is_data_file(const fs::path& file) {
  static constexpr std::array kEndings = {".jsonl", ".json",     ".parquet",
                                          ".csv",   ".jsonl.gz", ".csv.gz"};
  const std::string name = file.filename().string();
  return std::ranges::any_of(kEndings, [&](const char* ending) { return name.ends_with(ending); });
}

bool begins_with_one_of(const std::string& name, const std::vector<std::string>& beginnings) {
  return std::ranges::any_of(beginnings,
                             [&](const std::string& text) { return name.starts_with(text); });
}

// Of several folders with files (the configurations of a data set) the first by name.
QuickData files_of_folder(const std::string& name, const fs::path& folder) {
  std::map<fs::path, QuickData> by_folder;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || !is_data_file(entry.path())) continue;
    QuickData& data = by_folder[entry.path().parent_path()];
    const std::string file = entry.path().filename().string();
    if (begins_with_one_of(file, {"train"})) data.train.push_back(entry.path().string());
    if (begins_with_one_of(file, {"test", "valid", "dev"}))
      data.test.push_back(entry.path().string());
  }
  for (auto& [_, data] : by_folder) {
    if (data.train.empty()) continue;
    data.name = name;
    std::ranges::sort(data.train);
    std::ranges::sort(data.test);
    return data;
  }
  throw InputError("the folder has no file whose name begins with train",
                   {.where = folder.string(), .remedy = "name a file of rows, e.g. rows.jsonl"});
}

struct QuickRow {
  std::string order;  // a hash of the problem's text
  std::string line;
};

struct QuickRows {
  std::vector<QuickRow> rows;
  std::int64_t answers = 0, tests = 0;
};

// Rows with all their columns, and with those of a native row.
QuickRows read_quick_rows(const std::vector<std::string>& files, const StringMap& map) {
  ProblemParser parser(map, /*require_answer=*/false);
  QuickRows read;
  for (const std::string& file : files) {
    RowReader reader(file);
    for (Json row; reader.next(row);) {
      Json whole = row;
      const Problem problem = parser.parse(row, reader.where(), reader.stem(), reader.row());
      read.answers += !problem.answer.empty();
      read.tests += !problem.tests.is_null();
      whole.update(to_row(problem));
      const std::string text = normalised_text(prompt_text(problem));
      read.rows.push_back({checksum_of(text), to_json_line(whole)});
    }
  }
  return read;
}

std::string lines_of(std::span<const QuickRow> rows) {
  std::string text;
  for (const QuickRow& row : rows)
    text += row.line + "\n";
  return text;
}

// The rows with the smallest hashes come first, so that any beginning of them is a random choice.
void order_by_hash(std::vector<QuickRow>& rows) {
  std::ranges::stable_sort(rows, {}, &QuickRow::order);
}

QuickSplit split_countdown(const QuickData& data, std::int64_t held_out) {
  const std::string numbers = data.train[0].substr(0, data.train[0].find(':', sizeof("countdown")));
  return {
      .train = data.train,
      .bench = fmt::format("{}:held-out:{}", numbers, held_out),
      .kind = "countdown",
      .text = fmt::format("{} problems of the built-in task that training never draws", held_out),
      .files = {}};
}

}  // namespace

fs::path find_local(const std::string& name, LocalKind kind) {
  const bool is_model = kind == LocalKind::kModel;
  std::error_code ignored;
  if (is_model ? fs::is_directory(name, ignored) : fs::exists(name, ignored)) return name;
  const std::string fetch = looks_like_a_hub_name(name)
                                ? fmt::format("`hf download {}{} --local-dir {}` fetches it; ",
                                              is_model ? "" : "--repo-type dataset ", name, name)
                                : "";
  throw InputError(fmt::format("no such folder{}", is_model ? "" : " or file"),
                   {.where = name,
                    .remedy = fmt::format("{}name another with {}, or see a training now, without "
                                          "any download: `antisd demo`",
                                          fetch, is_model ? "--model" : "--data")});
}

QuickData find_quick_data(const std::string& name) {
  if (is_countdown_source(name)) return {.name = name, .train = {name}, .test = {}};
  const fs::path path = find_local(name, LocalKind::kData);
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return files_of_folder(name, path);
  return {.name = name, .train = {path.string()}, .test = {}};
}

QuickSplit split_quick_data(const QuickData& data, const QuickSplitOptions& options) {
  if (is_countdown_source(data.train[0])) return split_countdown(data, options.held_out);
  const bool has_test = !data.test.empty();
  QuickRows read = read_quick_rows(has_test ? data.test : data.train, options.map);
  std::vector<QuickRow>& rows = read.rows;
  order_by_hash(rows);
  const auto count = std::ssize(rows);
  std::ptrdiff_t held_out = std::min<std::ptrdiff_t>(
      options.held_out, has_test ? count : std::max<std::ptrdiff_t>(1, count / 5));
  while (held_out > 0 && held_out < count &&
         rows[std::size_t(held_out)].order == rows[std::size_t(held_out - 1)].order)
    ++held_out;  // equal texts stay on one side
  if (held_out == 0 || (!has_test && held_out >= count)) {
    throw InputError("there are fewer than two different problems",
                     {.where = data.name, .remedy = "give more rows: some are held out"});
  }
  QuickSplit split{.train = data.train, .bench = (options.folder / "held-out.jsonl").string()};
  if (read.tests == count) split.kind = "code";
  if (read.answers == count) split.kind = "math";
  const std::span<const QuickRow> all = rows;
  const auto cut = static_cast<std::size_t>(held_out);
  split.files.emplace_back(split.bench, lines_of(all.first(cut)));
  if (!has_test) {
    split.train = {(options.folder / "train.jsonl").string()};
    split.files.emplace_back(split.train[0], lines_of(all.subspan(cut)));
  }
  split.text = has_test ? fmt::format("{} of {} test rows", held_out, count)
                        : fmt::format("{} of {} rows; the others are trained on", held_out, count);
  return split;
}

void QuickSplit::write() const {
  for (const auto& [file, text] : files) {
    fs::create_directories(file.parent_path());
    write_file_atomically(file, text);
  }
}

}  // namespace antisd::inline cli
