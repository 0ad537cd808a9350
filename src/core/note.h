// Lines on standard error that are not errors: what was written, what was left out, warnings. The
// command line's --quiet silences them for the whole process, which has one standard error.
//
//   note("rows.csv: 12 of 12 rows");
#pragma once

#include <string_view>

namespace antisd::inline core {

void note(std::string_view line);
void silence_notes();
bool notes_are_silent();

}  // namespace antisd::inline core
