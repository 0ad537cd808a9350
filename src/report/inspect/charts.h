// Charts of an analysis as inline SVG: no script, colours from the page's CSS variables, and every
// mark has its numbers as a title.
#pragma once

#include <string>

#include "io/json.h"

namespace antisd::inline report {

// The CSS that the charts need.
std::string_view chart_style();

// `histogram` of a summary; counts on a logarithmic scale, for the tails.
std::string histogram_chart(const Json& histogram);

// `position` or `relative_position`: mean u of each bin, its interval and number of tokens.
std::string means_chart(const Json& rows, const std::string& axis);

// `density`: tokens by (pi_S, pi_T); colour by mean u, opacity by their number.
std::string density_chart(const Json& density);

// The running sums of u of `responses`, right and wrong ones separately.
std::string running_sum_chart(const Json& responses);

}  // namespace antisd::inline report
