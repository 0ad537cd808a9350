// A run directory as a page shows it, read while the run writes: each refresh reads only what is
// new. A missing, incomplete or damaged file is left out, with a note.
//
//   RunReader run("antisd-0", Folder("runs/antisd-0"));
//   while (run.refresh(8 << 20).more) {}
//   run.table().find("critic/rewards/mean");
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "io/json.h"
#include "report/folder.h"
#include "report/line_tail.h"
#include "report/metric_table.h"
#include "report/run_config_text.h"
#include "run/run_files.h"

namespace antisd::inline report {

struct RunWarning {
  std::string text;
  std::string first, last;  // times, as in the log
  std::int64_t count = 0;
};

struct GateEvent {
  std::int64_t step;
  bool open;
};

class RunReader {
 public:
  // `name` is the run's name on the page.
  RunReader(std::string name, Folder folder);

  struct Change {
    std::int64_t first_step = -1;  // rows from this step on are new; -1: none
    bool facts = false;            // anything else
    bool more = false;             // metrics.jsonl or log.txt has more than was read
  };
  // Reads about `max_bytes` of each growing file.
  Change refresh(std::int64_t max_bytes);

  const std::string& name() const { return name_; }
  const Folder& folder() const { return folder_; }
  const MetricTable& table() const { return table_; }
  const ConfigText& config() const { return config_; }
  const Json& run() const { return run_; }  // the shown part of run.json
  const std::vector<RunWarning>& warnings() const { return warnings_; }
  const std::vector<GateEvent>& gate_events() const { return gate_events_; }  // the latest ones
  const std::map<std::int64_t, Json>& evaluations() const { return evaluations_; }  // by step
  const std::vector<std::int64_t>& dumps() const { return dumps_; }  // steps of rollouts/
  std::vector<std::string> notes() const;                            // what could not be read
  std::string method() const;                                        // "" if unknown
  std::int64_t rows_written_ns() const { return rows_.stamp().modified_ns; }

 private:
  bool read_config();
  bool read_run_json();
  bool read_evaluations();
  bool read_dump_names();
  void take_log_line(std::string_view line);
  void find_gate_events();

  std::string name_;
  Folder folder_;
  LineTail rows_{kMetricsFile}, log_{kLogFile};
  MetricTable table_;
  std::int64_t broken_rows_ = 0;
  ConfigText config_;
  Json run_ = Json::object();
  std::vector<RunWarning> warnings_;
  std::vector<GateEvent> gate_events_;
  std::map<std::int64_t, Json> evaluations_;
  std::map<std::int64_t, FileStamp> evaluation_stamps_;
  std::vector<std::int64_t> dumps_;
  std::map<std::string, std::string> problems_;  // by file
  FileStamp config_stamp_, run_stamp_;
};

}  // namespace antisd::inline report
