// str's methods, by name.
#pragma once

#include <string>
#include <unordered_map>

#include "text/jinja/runtime.h"

namespace antisd::inline text::jinja {

using Method = Value (*)(Runtime& runtime, const Value& self, Arguments& arguments);
const std::unordered_map<std::string, Method>& string_methods();

// str.replace; count < 0: all.
std::string replaced(Runtime& runtime, const std::string& text, const std::string& old,
                     const std::string& fresh, std::int64_t count);

}  // namespace antisd::inline text::jinja
