// "Did you mean ...?": the known name nearest to an unknown one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace antisd::inline core {

// Insertions, deletions, substitutions and swaps of neighbours, each 1.
int edit_distance(std::string_view a, std::string_view b);

// The nearest candidate within a third of the name's length (at least 2), or "" where none is near.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace antisd::inline core
