// How a run's configuration differs between two starts: every key that changed, and whether the run
// is still the same one.
//
//   const std::vector<ConfigChange> changes = config_changes(before, now);
//   check_changes(changes, {"reward"}, run / "config.toml");     // --allow reward
//
// There are three kinds of keys. Those that define what is learnt (reward, prompts, data, model,
// method) may change only if --allow names them. Those that change how it is learnt (optim.lr) give
// a warning. The rest (checkpoint.*, record.*, eval.*) may change freely.
#pragma once

#include <string>
#include <vector>

#include "config/run_config.h"

namespace antisd::inline config {

enum class ChangeKind { kMeaning, kTraining, kHarmless };

struct ConfigChange {
  std::string key;
  std::string before, now;  // as TOML
  ChangeKind kind = ChangeKind::kTraining;

  std::string text() const;  // "optim.lr: 1e-06 -> 2e-06"; long values are shortened
};

// In the order of the options. Another spelling of the same file's path is harmless.
std::vector<ConfigChange> config_changes(const RunConfig& before, const RunConfig& now);

// InputError for changes of meaning that `allowed` does not list. `where` names the earlier
// configuration file. `allowed` holds keys and sections ("reward" stands for every key in it); any
// other entry is an InputError.
void check_changes(const std::vector<ConfigChange>& changes,
                   const std::vector<std::string>& allowed, const std::string& where);

}  // namespace antisd::inline config
