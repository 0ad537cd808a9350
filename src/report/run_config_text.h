// A run's config.toml as flat text, "method.gate.close" -> "0.93": enough to compare runs, also
// those of other versions with unknown keys.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace antisd::inline report {

using ConfigText = std::map<std::string, std::string>;

// InputError "WHERE: ..." for text that is not TOML.
ConfigText flatten_toml(std::string_view text, const std::string& where);

// A value without TOML's quotes, or "" if the key is absent.
std::string plain_value(const ConfigText& config, const std::string& key);

}  // namespace antisd::inline report
