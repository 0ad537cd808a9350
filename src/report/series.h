// Which runs belong together (runs that differ only in the seed are one series), and how the others
// differ.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/run_config_text.h"

namespace antisd::inline report {

struct NamedConfig {
  std::string name;
  std::string method;
  ConfigText config;  // empty if unreadable: the run is then its own series
};

struct Series {
  std::string name;
  std::vector<std::size_t> runs;  // in their order
};

// Where a run writes its files ([record], [checkpoint]) does not matter. A second run of the same
// seed starts its own series.
std::vector<Series> group_by_seed(std::span<const NamedConfig> runs);

struct ConfigDifference {
  std::string key;
  std::vector<std::string> values;  // one per run; "" if it has no such key
};

// Keys whose values differ between runs, except record.dir and runs without a configuration.
std::vector<ConfigDifference> config_differences(std::span<const NamedConfig> runs);

}  // namespace antisd::inline report
