#include "dist/store.h"

#include <algorithm>

#include "core/check.h"

namespace antisd::inline dist {

void MemoryStore::set(const std::string& key, const std::string& value) {
  const std::lock_guard lock(table_->mutex);
  table_->values[key] = value;
}

std::optional<std::string> MemoryStore::find(const std::string& key) {
  const std::lock_guard lock(table_->mutex);
  const auto found = table_->values.find(key);
  if (found == table_->values.end()) return std::nullopt;
  return found->second;
}

bool MemoryStore::has(const std::vector<std::string>& keys) {
  return std::ranges::all_of(keys, [&](const std::string& key) { return find(key).has_value(); });
}

std::vector<std::string> MemoryStore::get(const std::vector<std::string>& keys) {
  std::vector<std::string> values;
  for (const std::string& key : keys) {
    const std::optional<std::string> value = find(key);
    ANTISD_CHECK(value.has_value());
    values.push_back(*value);
  }
  return values;
}

std::int64_t MemoryStore::add(const std::string& key, std::int64_t value) {
  const std::lock_guard lock(table_->mutex);
  std::string& text = table_->values[key];
  const std::int64_t sum = (text.empty() ? 0 : std::stoll(text)) + value;
  text = std::to_string(sum);
  return sum;
}

std::unique_ptr<Store> MemoryStore::clone() {
  return std::make_unique<MemoryStore>(*this);
}

}  // namespace antisd::inline dist
