// What came out of a comparison, in plain words for somebody who sees it for the first time.
#pragma once

#include <span>
#include <string>

#include "report/sweep/outcome.h"

namespace antisd::inline report {

// One or two sentences per arm, the baseline first. Says where one run cannot tell two arms apart.
std::string outcome_words(std::span<const ArmOutcome> arms, const std::string& baseline);

}  // namespace antisd::inline report
