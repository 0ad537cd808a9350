// Python's two ways to fill in a string: "%s" % value and "{}".format(value).
#pragma once

#include <string>

#include "text/jinja/runtime.h"

namespace antisd::inline text::jinja {

std::string percent_format(Runtime& runtime, const std::string& pattern, const Value& values);
std::string brace_format(Runtime& runtime, const std::string& pattern, Arguments& arguments);

}  // namespace antisd::inline text::jinja
