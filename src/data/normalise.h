// When are two problems the same? Texts are compared after white space is collapsed and case
// folded; near-duplicates by the word 5-grams they share, which formatting ($x$ against \(x\))
// cannot change.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace antisd::inline data {

// White space (Unicode's) collapsed to one blank and trimmed, case folded.
std::string normalised_text(std::string_view text);

// Hashes of the text's words in order: runs of letters and digits after folding; every Han, Kana
// or Hangul character is a word of its own; anything else only separates.
std::vector<std::uint64_t> word_hashes(std::string_view text);

// Distinct hashes of all runs of `n` words, sorted; none where the text has fewer words.
std::vector<std::uint64_t> word_ngrams(std::string_view text, std::size_t n);

// Unicode characters, as a person counts them, not bytes.
std::int64_t count_characters(std::string_view text);

}  // namespace antisd::inline data
