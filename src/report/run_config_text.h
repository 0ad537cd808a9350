// A run's config.toml as flat text, "method.gate.close" -> "0.93": enough to compare runs, also
// those of other versions, whose keys this one may not know.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace antisd::inline report {

using ConfigText = std::map<std::string, std::string>;

// InputError "WHERE: ..." for what is not TOML.
ConfigText flatten_toml(std::string_view text, const std::string& where);

// A value without TOML's quotes, or "" where the key is absent.
std::string plain_value(const ConfigText& config, const std::string& key);

}  // namespace antisd::inline report
