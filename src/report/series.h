// Which runs belong together: those that differ in nothing but the seed are one series, and what
// tells the others apart.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/run_config_text.h"

namespace antisd::inline report {

struct NamedConfig {
  std::string name;
  std::string method;
  ConfigText config;  // empty where it could not be read: such a run stands alone
};

struct Series {
  std::string name;
  std::vector<std::size_t> runs;  // in their order
};

// Where a run writes its files ([record], [checkpoint]) makes no difference. Two runs of one seed
// are not two seeds: the second begins a series of its own.
std::vector<Series> group_by_seed(std::span<const NamedConfig> runs);

struct ConfigDifference {
  std::string key;
  std::vector<std::string> values;  // one per run; "" where it has no such key
};

// Keys that not all runs have alike, record.dir and the runs without a configuration left aside.
std::vector<ConfigDifference> config_differences(std::span<const NamedConfig> runs);

}  // namespace antisd::inline report
