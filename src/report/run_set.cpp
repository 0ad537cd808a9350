#include "report/run_set.h"

#include <algorithm>
#include <cmath>

#include "report/run_json.h"
#include "report/series.h"

namespace antisd::inline report {
namespace {

constexpr std::size_t kMaxMarks = 4'096;

}  // namespace

void RunSet::add(std::string name, Folder folder) {
  ++version_;
  runs_.push_back({fmt::format("r{}", next_id_++),
                   std::make_unique<RunReader>(std::move(name), std::move(folder)),
                   {},
                   version_,
                   version_});
  describe_set();
}

void RunSet::remove_if(const std::function<bool(const RunReader&)>& goes) {
  if (std::erase_if(runs_, [&](const Entry& entry) { return goes(*entry.reader); }) == 0) return;
  all_rows_.clear();
  ++version_;
  describe_set();
}

bool RunSet::refresh(std::int64_t max_bytes) {
  std::vector<RunReader::Change> changes(runs_.size());
  std::vector<std::int64_t> widths(runs_.size());
  pool_.parallel_for(runs_.size(), [&](std::size_t i) {
    widths[i] = bucket_width(runs_[i].reader->table().last_step());
    changes[i] = runs_[i].reader->refresh(max_bytes);
  });
  bool more = false, described = true;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    more = more || changes[i].more;
    described = described && !changes[i].facts;
    note(runs_[i], changes[i], widths[i]);
  }
  if (!described) describe_set();
  return more;
}

void RunSet::note(Entry& entry, const RunReader::Change& change, std::int64_t width_before) {
  if (change.first_step < 0 && !change.facts) return;
  ++version_;
  if (change.facts) entry.facts_version = version_;
  if (change.first_step < 0) return;
  entry.marks.push_back({version_, change.first_step, width_before});
  if (entry.marks.size() <= kMaxMarks) return;
  // A reader with a version before the remaining marks gets everything.
  entry.marks.erase(entry.marks.begin(), entry.marks.end() - kMaxMarks / 2);
  entry.marks.front().first_step = 0;
}

// Series and differences change rarely and need every configuration.
void RunSet::describe_set() {
  std::vector<NamedConfig> configs;
  for (const Entry& entry : runs_)
    configs.push_back({entry.reader->name(), entry.reader->method(), entry.reader->config()});
  Json order = Json::array(), series = Json::array(), differences = Json::array();
  for (const Entry& entry : runs_)
    order.push_back(entry.id);
  for (const Series& one : group_by_seed(configs)) {
    Json ids = Json::array();
    for (const std::size_t run : one.runs)
      ids.push_back(runs_[run].id);
    series.push_back({{"name", one.name}, {"runs", std::move(ids)}});
  }
  for (const ConfigDifference& difference : config_differences(configs)) {
    Json values = Json::object();
    for (std::size_t run = 0; run < runs_.size(); ++run)
      values[runs_[run].id] = difference.values[run];
    differences.push_back({{"key", difference.key}, {"values", std::move(values)}});
  }
  std::string text = to_json_line({{"order", order},
                                   {"series", series},
                                   {"differences", differences},
                                   {"comparison", compare_ ? compare_(*this) : Json()}});
  if (text == set_json_) return;
  set_json_ = std::move(text);
  set_version_ = ++version_;
}

std::shared_ptr<const RunSet::AllRows> RunSet::all_rows(const Entry& entry) const {
  const std::int64_t newest = entry.marks.empty() ? 0 : entry.marks.back().version;
  // Held while writing, so that fifty browsers at once cost as much as one.
  const std::lock_guard lock(all_rows_mutex_);
  std::shared_ptr<const AllRows>& kept = all_rows_[entry.id];
  if (kept == nullptr || kept->version != newest) {
    AllRows rows{newest, {}};
    append_rows_json(rows.json, *entry.reader, 0);
    kept = std::make_shared<const AllRows>(std::move(rows));
  }
  return kept;
}

std::string RunSet::update(std::int64_t since) const {
  std::string out = fmt::format("{{\"version\":{}", version_);
  if (set_version_ > since && !set_json_.empty()) out += ",\"set\":" + set_json_;
  out += ",\"runs\":[";
  bool is_first = true;
  for (const Entry& entry : runs_) {
    const bool facts = entry.facts_version > since;
    const bool is_new = entry.born > since;
    std::int64_t from_step = -1, known_width = 0;
    for (auto mark = entry.marks.rbegin(); mark != entry.marks.rend() && mark->version > since;
         ++mark) {
      from_step = from_step < 0 ? mark->first_step : std::min(from_step, mark->first_step);
      known_width = mark->width_before;
    }
    if (is_new && from_step >= 0) from_step = 0;
    if (!facts && from_step < 0) continue;
    if (!is_first) out += ",";
    is_first = false;
    out += fmt::format("{{\"id\":\"{}\"", entry.id);
    if (facts) out += ",\"facts\":" + to_json_line(facts_json(*entry.reader));
    if (from_step >= 0) {
      const std::int64_t width = bucket_width(entry.reader->table().last_step());
      const std::int64_t from = width == known_width ? from_step / width : 0;
      out += ",\"rows\":";
      if (from > 0) {
        append_rows_json(out, *entry.reader, from);
      } else {
        out += all_rows(entry)->json;
      }
    }
    out += "}";
  }
  return out + "]}";
}

const RunReader* RunSet::find(const std::string& id) const {
  const auto found =
      std::find_if(runs_.begin(), runs_.end(), [&](const Entry& entry) { return entry.id == id; });
  return found == runs_.end() ? nullptr : found->reader.get();
}

}  // namespace antisd::inline report
