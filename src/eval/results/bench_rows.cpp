#include "eval/results/bench_rows.h"

#include <algorithm>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "core/check.h"
#include "core/error.h"
#include "io/atomic_file.h"
#include "io/checksum.h"
#include "io/jsonl.h"
#include "run/run_files.h"

namespace antisd::inline eval {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSettingsFile = "settings.json";
constexpr std::int64_t kMaxRowsBytes = std::int64_t{1} << 36;

Json read_settings(const fs::path& folder) {
  const fs::path file = folder / kSettingsFile;
  if (!fs::exists(file)) return Json::object();
  Json settings = parse_json(read_file(file), file.string());
  return settings.is_object() ? settings : Json::object();
}

void write_settings(const fs::path& folder, const Json& settings) {
  write_file_atomically(folder / kSettingsFile,
                        settings.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace

std::string settings_difference(const Json& before, const Json& now) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (const auto& [key, value] : now.items()) {
    const Json* const old = before.contains(key) ? &before[key] : nullptr;
    if (old != nullptr && *old == value) continue;
    add(old == nullptr ? fmt::format("{} is {}", key, to_json_line(value))
        : value.is_string()
            ? fmt::format("other {}", key)
            : fmt::format("{} was {} and is {}", key, to_json_line(*old), to_json_line(value)));
  }
  return text;
}

BenchRows::BenchRows(const fs::path& folder, const std::string& bench, const Json& settings,
                     std::int64_t problems, std::int64_t n)
    : file_(folder / (bench + ".jsonl")),
      hash_(checksum_of(to_json_line(settings)).substr(0, 16)),
      n_(n),
      has_(static_cast<std::size_t>(problems), false) {
  ANTISD_CHECK_LE(1, n);
  std::error_code error;
  fs::create_directories(folder, error);  // opening the file reports an error
  Json all = read_settings(folder);
  if (fs::exists(file_) && fs::file_size(file_) > 0 && all.value(bench, Json()) != settings) {
    const std::string difference = settings_difference(all.value(bench, Json::object()), settings);
    throw InputError(fmt::format("the rows there were made with other settings: {}", difference),
                     {.where = file_.string(),
                      .remedy = "choose another folder with --out, or replace them with --again"});
  }
  all[bench] = settings;
  write_settings(folder, all);
  read();
  append_ = std::make_unique<AppendFile>(file_);
}

// Keeps the complete problems.
void BenchRows::read() {
  if (!fs::exists(file_)) return;
  std::map<std::pair<std::int64_t, std::int64_t>, SampleRow> found;
  const std::string text = read_file(file_, kMaxRowsBytes);
  bool damaged = !text.empty() && text.back() != '\n';
  std::istringstream stream(text);
  JsonlReader reader(stream, file_.string());
  for (bool more = true; more;) {
    try {
      Json json;
      more = reader.next(json);
      if (!more) break;
      SampleRow row = sample_row_from(json, reader.where());
      const bool fits = row.problem < std::ssize(has_) && row.sample < n_ && row.settings == hash_;
      if (!fits || !found.emplace(std::pair(row.problem, row.sample), row).second) damaged = true;
    } catch (const InputError&) {
      damaged = true;  // incomplete after a kill
    }
  }
  std::vector<std::int64_t> samples(has_.size(), 0);
  for (const auto& [key, row] : found)
    ++samples[static_cast<std::size_t>(key.first)];
  for (auto& [key, row] : found) {
    const auto problem = static_cast<std::size_t>(key.first);
    has_[problem] = samples[problem] == n_;
    if (has_[problem])
      rows_.push_back(std::move(row));
    else
      damaged = true;
  }
  if (damaged) write_all();
}

bool BenchRows::has(std::int64_t problem) const {
  return has_[static_cast<std::size_t>(problem)];
}

void BenchRows::add(std::vector<SampleRow> samples) {
  ANTISD_CHECK_EQ(std::ssize(samples), n_);
  std::string lines;
  for (SampleRow& row : samples) {
    row.settings = hash_;
    lines += to_json_line(to_json(row)) + "\n";
  }
  append_->append(lines);
  has_[static_cast<std::size_t>(samples.front().problem)] = true;
  std::move(samples.begin(), samples.end(), std::back_inserter(rows_));
}

void BenchRows::finish() {
  std::sort(rows_.begin(), rows_.end(), [](const SampleRow& a, const SampleRow& b) {
    return std::pair(a.problem, a.sample) < std::pair(b.problem, b.sample);
  });
  append_.reset();
  write_all();
}

void BenchRows::write_all() {
  AtomicFile file(file_);
  for (const SampleRow& row : rows_)
    file.write(to_json_line(to_json(row)) + "\n");
  file.commit();
}

void remove_evaluation(const fs::path& folder, const std::vector<std::string>& benches) {
  std::error_code ignored;
  fs::remove(folder / kSummaryFile, ignored);  // first: without it the evaluation is not finished
  Json settings = Json::object();
  try {
    settings = read_settings(folder);
  } catch (const InputError&) {  // damaged: remove the rows too
  }
  for (const std::string& bench : benches) {
    fs::remove(folder / (bench + ".jsonl"), ignored);
    settings.erase(bench);
  }
  if (fs::exists(folder)) write_settings(folder, settings);
}

std::vector<SampleRow> read_rows(const fs::path& file) {
  std::vector<SampleRow> rows;
  JsonlReader reader(file);
  for (Json json; reader.next(json);)
    rows.push_back(sample_row_from(json, reader.where()));
  return rows;
}

}  // namespace antisd::inline eval
