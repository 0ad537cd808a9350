// The runs of a page, and what a reader of the page does not have yet.
//
//   RunSet runs;  // or RunSet runs(compare)
//   runs.add("grpo", Folder("runs/grpo"));
//   runs.refresh(8 << 20);
//   send(runs.update(0));        // everything
//   runs.refresh(8 << 20);
//   send(runs.update(version));  // changes since the answer with this version
//
// An answer is JSON:
//   {"version": 17,
//    "set": {"order": [ID], "series": [{"name", "runs": [ID]}],
//            "differences": [{"key", "values": {ID: ..}}], "comparison": ..},
//    "runs": [{"id", "facts": {...},
//              "rows": {"width", "from", "last", "written",
//                       "columns": {NAME: [[first], [second], [mean]]},
//                       "times": {NAME: [sum, count]}}}]}
// with "set", "facts" and "rows" absent if they have not changed. Columns hold buckets
// (metric_table.h) from number `from` on; earlier ones are unchanged.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/thread_pool.h"
#include "report/run_reader.h"

namespace antisd::inline report {

// One thread at a time; const functions may run concurrently.
class RunSet {
 public:
  // `compare` makes the table above the runs' evaluations: null, or texts {"head": [..], "rows":
  // [[..]]} that start with the run's name. It is called again when a run's facts change.
  using Compare = std::function<Json(const RunSet&)>;
  explicit RunSet(Compare compare = {}) : compare_(std::move(compare)) {}

  void add(std::string name, Folder folder);
  void remove_if(const std::function<bool(const RunReader&)>& goes);

  // Reads about `max_bytes` of each growing file; true if there is more.
  bool refresh(std::int64_t max_bytes);

  std::string update(std::int64_t since) const;
  std::int64_t version() const { return version_; }

  struct Entry {
    std::string id;
    std::unique_ptr<RunReader> reader;
    // One per refresh that changed rows: what a reader with an older version needs.
    struct Mark {
      std::int64_t version, first_step, width_before;
    };
    std::vector<Mark> marks;
    std::int64_t facts_version = 0;
    std::int64_t born = 0;  // the version that first had the run
  };
  const std::vector<Entry>& runs() const { return runs_; }
  const RunReader* find(const std::string& id) const;

 private:
  // All rows of a run as JSON, for browsers that open a page: kept until the rows change.
  struct AllRows {
    std::int64_t version = 0;
    std::string json;
  };
  std::shared_ptr<const AllRows> all_rows(const Entry& entry) const;
  void note(Entry& entry, const RunReader::Change& change, std::int64_t width_before);
  void describe_set();

  Compare compare_;
  ThreadPool pool_{available_threads() - 1};
  std::vector<Entry> runs_;
  std::int64_t version_ = 1;
  std::int64_t next_id_ = 1;
  std::int64_t set_version_ = 1;
  std::string set_json_;
  mutable std::mutex all_rows_mutex_;
  mutable std::map<std::string, std::shared_ptr<const AllRows>> all_rows_;  // by the run's id
};

}  // namespace antisd::inline report
