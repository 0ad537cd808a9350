// Lines at the bottom of a terminal that are redrawn in place; nothing is drawn elsewhere.
//
//   LiveTable table;
//   table.draw({"grpo    12/60", "antisd   9/60"});
//   table.clear();   // before other output
#pragma once

#include <string>
#include <vector>

namespace antisd::inline report {

struct LiveTableOptions {
  int descriptor = 2;  // standard error
  bool quiet = false;
};

class LiveTable {
 public:
  explicit LiveTable(LiveTableOptions options = {});
  ~LiveTable() { clear(); }
  LiveTable(const LiveTable&) = delete;
  LiveTable& operator=(const LiveTable&) = delete;

  bool is_live() const { return is_live_; }
  int columns() const;  // 80 if there is no terminal
  // Lines are cut to the width; if there are more than fit the height, the last one is kept.
  void draw(const std::vector<std::string>& lines);
  void clear();

 private:
  int rows() const;

  LiveTableOptions options_;
  bool is_live_;
  int drawn_ = 0;
};

}  // namespace antisd::inline report
