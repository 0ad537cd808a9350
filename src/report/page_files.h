// The texts of page_files/ and Chart.js (MIT; its notice is part of the text), embedded at build
// time.
#pragma once

#include <string_view>

namespace antisd::inline report {

std::string_view chart_library();
std::string_view page_style();
std::string_view page_script();

}  // namespace antisd::inline report
