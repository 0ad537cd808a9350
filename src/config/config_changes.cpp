#include "config/config_changes.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"
#include "core/nearest.h"

namespace antisd::inline config {
namespace {

constexpr std::array<std::string_view, 21> kMeaning = {
    "reward.kind",         "reward.command",    "reward.function",
    "reward.correct_at",   "reward.weight",     "reward.terms",
    "reward.weights",      "reward.truncated",  "reward.relative_tolerance",
    "data.train",          "data.map",          "data.template",
    "model.path",          "data.chat_options", "method.name",
    "context.templates",   "pretrain.source",   "pretrain.new_model",
    "method.teacher.path", "context.column",    "context.command"};
constexpr std::array<std::string_view, 14> kHarmless = {"record",
                                                        "checkpoint",
                                                        "eval",
                                                        "train.steps",
                                                        "reward.workers",
                                                        "reward.timeout_s",
                                                        "reward.memory_mb",
                                                        "reward.python",
                                                        "context.timeout_s",
                                                        "reward.sandbox",
                                                        "reward.give_up_after",
                                                        "dist",
                                                        "optim.offload",
                                                        "model.gradient_checkpointing"};

constexpr std::size_t kShownBytes = 160;  // of a value

// "reward" holds "reward.kind", and "data.chat_options" its entries.
bool holds(std::string_view section, std::string_view key) {
  return key == section || (key.starts_with(section) && key[section.size()] == '.');
}

ChangeKind kind_of(std::string_view key) {
  const auto is_of = [&](std::string_view section) { return holds(section, key); };
  if (std::any_of(kMeaning.begin(), kMeaning.end(), is_of)) return ChangeKind::kMeaning;
  if (std::any_of(kHarmless.begin(), kHarmless.end(), is_of)) return ChangeKind::kHarmless;
  return ChangeKind::kTraining;
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return a == b || std::filesystem::equivalent(a, b, error);  // false where one is missing
}

bool same_files(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_file);
}

// Whether both values name the same files, spelled differently.
bool is_respelled(std::string_view key, const RunConfig& before, const RunConfig& now) {
  if (key == "model.path") return same_file(before.model.path, now.model.path);
  if (key == "method.teacher.path")
    return same_file(before.method.teacher.path, now.method.teacher.path);
  if (key == "data.train") return same_files(before.data.train, now.data.train);
  if (key == "pretrain.source") return same_files(before.pretrain.source, now.pretrain.source);
  return false;
}

std::string shortened(const std::string& value) {
  if (value.size() <= kShownBytes) return value;
  std::size_t end = kShownBytes;
  while (end > 0 && (value[end] & 0xC0) == 0x80)  // step back to the start of a character
    --end;
  return value.substr(0, end) + "...";
}

// A key or a section of the configuration, or an entry of a table.
void check_allowed(const std::string& allowed) {
  const RunConfig known;
  std::vector<std::string> candidates;
  for (const Option& option : known.options().options()) {
    const bool is_entry = option.type_text().starts_with("table") && holds(option.key(), allowed);
    if (holds(allowed, option.key()) || is_entry) return;
    candidates.push_back(option.key());
    candidates.push_back(option.section());
  }
  const std::string nearest = nearest_name(allowed, candidates);
  throw InputError(fmt::format("--allow {}: there is no such key or section", allowed),
                   {.remedy = nearest.empty() ? "`antisd config --defaults` lists every key"
                                              : fmt::format("did you mean '{}'?", nearest)});
}

}  // namespace

std::string ConfigChange::text() const {
  return fmt::format("{}: {} -> {}", key, shortened(before), shortened(now));
}

std::vector<ConfigChange> config_changes(const RunConfig& before, const RunConfig& now) {
  std::vector<ConfigChange> changes;
  for (const Option& option : now.options().options()) {
    const std::string old = before.options().find(option.key())->value_toml();
    if (old == option.value_toml()) continue;
    ChangeKind kind = kind_of(option.key());
    if (is_respelled(option.key(), before, now)) kind = ChangeKind::kHarmless;
    if (option.key() == "train.steps" && now.train.steps < before.train.steps)
      kind = ChangeKind::kTraining;
    changes.push_back({option.key(), old, option.value_toml(), kind});
  }
  return changes;
}

void check_changes(const std::vector<ConfigChange>& changes,
                   const std::vector<std::string>& allowed, const std::string& where) {
  for (const std::string& key : allowed)
    check_allowed(key);
  std::vector<std::string> texts, flags;
  for (const ConfigChange& change : changes) {
    const auto allows = [&](const std::string& key) {
      return holds(key, change.key) || holds(change.key, key);
    };
    if (change.kind != ChangeKind::kMeaning || std::any_of(allowed.begin(), allowed.end(), allows))
      continue;
    texts.push_back(change.text());
    flags.push_back("--allow " + change.key);
  }
  if (texts.empty()) return;
  throw InputError(
      fmt::format("the run was trained with other settings: {}", fmt::join(texts, "; ")),
      {.where = where,
       .remedy = fmt::format("set it back, choose another record.dir, or allow it with {}",
                             fmt::join(flags, " "))});
}

}  // namespace antisd::inline config
