#include "cli/weights/quick_data.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "core/error.h"
#include "data/countdown.h"
#include "data/data_source.h"
#include "data/normalise.h"
#include "data/problem.h"
#include "data/row_reader.h"
#include "hub/cache.h"
#include "io/atomic_file.h"
#include "io/checksum.h"
#include "io/json.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;

// The same error, with what works without any download.
[[noreturn]] void offer_demo(const InputError& error, const char* flag) {
  ErrorContext context = error.context();
  context.remedy += fmt::format(
      "{}name another with {}, or see a training now, without any "
      "download: `antisd demo`",
      context.remedy.empty() ? "" : "; ", flag);
  throw InputError(error.problem(), context);
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

// The files of the same configuration's split for testing, if it has one. `text` ends with
// CONFIG/SPLIT.
std::vector<std::string> test_files(const std::string& text) {
  std::vector<std::string> files;
  for (const char* split : {"test", "validation", "dev"}) {
    try {
      for (const fs::path& file : find_source(text.substr(0, text.rfind('/') + 1) + split).files)
        files.push_back(file.string());
      return files;
    } catch (const InputError&) {  // it has no such split
    }
  }
  return files;
}

}  // namespace

fs::path find_quick_model(const std::string& name) {
  try {
    const fs::path folder = model_folder(name);
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored)) throw InputError("no such folder", {.where = name});
    return folder;
  } catch (const InputError& error) {
    offer_demo(error, "--model");
  }
}

QuickData find_quick_data(const std::string& name) {
  if (is_countdown_source(name)) return {.name = name, .train = {name}, .test = {}};
  try {
    const DataSource source = find_source(name);
    QuickData data{.name = name, .train = {}, .test = {}};
    for (const fs::path& file : source.files) {
      std::error_code ignored;
      if (!fs::exists(file, ignored)) throw InputError("no such folder or file", {.where = name});
      data.train.push_back(file.string());
    }
    if (!source.is_data_set) return data;
    data.test = test_files(source.text);
    if (data.test != data.train) return data;
    if (name.find(':') == std::string::npos)
      throw InputError("the data set has only problems to test with",
                       {.where = name, .remedy = "name a split to train on: NAME:CONFIG/SPLIT"});
    data.test.clear();  // asked for: some of it is held out
    return data;
  } catch (const InputError& error) {
    offer_demo(error, "--data");
  }
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
