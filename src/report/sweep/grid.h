// A grid of runs: every combination of the values of its axes, each a normal training run.
//
//   Grid grid;
//   grid.add("method.name", "grpo,antisd");
//   grid.add("train.seed", "0-4");
//   for (const GridRun& run : grid.runs()) ...   // grpo-seed0, grpo-seed1, ..., antisd-seed4
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace antisd::inline report {

struct GridAxis {
  std::string key;  // of the configuration
  std::vector<std::string> values;
};

struct GridRun {
  std::string name;                      // of its directory; unique, safe for a file system
  std::string arm;                       // the name without the seed; seeds are samples of an arm
  std::string seed;                      // empty if the grid has no seed axis
  std::vector<std::string> assignments;  // key=value, one per axis
};

class Grid {
 public:
  // "key=v1,v2"; commas inside brackets or quotes belong to a value, so a value can be a list:
  // "data.train=[a.jsonl,b.jsonl],[c.jsonl]". InputError for a malformed, empty or repeated axis.
  void add_assignment(std::string_view key_and_values);
  // The same in two parts. "train.seed" also takes ranges: "0-4" or "0-2,7".
  void add(std::string key, std::string_view values);
  // One value, which may contain commas.
  void add_single(std::string key, std::string value);

  // The last axis varies fastest. A grid without axes is one run, "run".
  std::vector<GridRun> runs() const;

 private:
  void add_axis(GridAxis axis);

  std::vector<GridAxis> axes_;
};

inline constexpr std::size_t kMaxGridRuns = 10'000;

}  // namespace antisd::inline report
