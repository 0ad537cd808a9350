// The top-level fields of one JSON object, without building a tree: a row of metrics has sixty
// short numbers, a rollout row has megabytes of arrays that a page never shows.
//
//   for_each_field(line, [&](std::string_view key, std::string_view value) { ... });
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace antisd::inline report {

// `value` is the field's JSON text. False if the text is not an object; fields before the error
// have then been visited. Arrays and objects are skipped, not checked.
bool for_each_field(std::string_view row,
                    const std::function<void(std::string_view key, std::string_view value)>& take);

// Nothing if the text is not a finite number.
std::optional<double> number_of(std::string_view value);
std::optional<std::string> string_of(std::string_view value);

}  // namespace antisd::inline report
