// The outcome of a comparison in plain words, for a first-time reader.
#pragma once

#include <span>
#include <string>

#include "report/sweep/outcome.h"

namespace antisd::inline report {

// One or two sentences per arm, the baseline first. Says when one run cannot tell two arms apart.
std::string outcome_words(std::span<const ArmOutcome> arms, const std::string& baseline);

}  // namespace antisd::inline report
