// Jinja's tests (`x is defined`), by name.
#pragma once

#include <string>

#include "text/jinja/ast.h"
#include "text/jinja/runtime.h"

namespace antisd::inline text::jinja {

Test find_test(const std::string& name);  // null if there is none
bool apply_test(Runtime& runtime, const std::string& name, const Value& value,
                Arguments& arguments);

}  // namespace antisd::inline text::jinja
