// The methods of Python's str, list, tuple and dict that a sandboxed template may call.
#pragma once

#include <string>

#include "text/jinja/runtime.h"

namespace antisd::inline text::jinja {

// Whether Python's type has the method, allowed or not.
bool has_method(const Value& value, const std::string& name);
// The method as a value; undefined if it would change the value.
Value method_of(Runtime& runtime, const Value& value, const std::string& name);
bool has_allowed_method(const Value& value, const std::string& name);
Value call_method(Runtime& runtime, const Value& value, const std::string& name,
                  Arguments& arguments);

}  // namespace antisd::inline text::jinja
