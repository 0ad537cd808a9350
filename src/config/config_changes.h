// What became of a run's configuration between two starts: every key that differs, and whether the
// run would still be the same one.
//
//   const std::vector<ConfigChange> changes = config_changes(before, now);
//   check_changes(changes, {"reward"}, run / "config.toml");     // --allow reward
//
// Three kinds of keys: those that say what is learnt (reward, prompts, data, model, method), which
// a run does not change without being told so; those that change how it is learnt (optim.lr), which
// are worth a warning; and those that concern neither (checkpoint.*, record.*, eval.*).
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

// In the order of the options. A path that leads to the same file as before is not a change
// of meaning.
std::vector<ConfigChange> config_changes(const RunConfig& before, const RunConfig& now);

// InputError for the changes of meaning that nobody allowed; `where` names the configuration of
// before. `allowed` holds keys and sections ("reward" is every key of it); InputError for one that
// is neither.
void check_changes(const std::vector<ConfigChange>& changes,
                   const std::vector<std::string>& allowed, const std::string& where);

}  // namespace antisd::inline config
