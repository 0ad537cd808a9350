// A configuration as a tree of JSON objects, e.g. for loggers: {"train": {"steps": 200, ...}, ...}.
#pragma once

#include "config/run_config.h"
#include "io/json.h"

namespace antisd::inline run {

Json config_json(const RunConfig& config);

}  // namespace antisd::inline run
