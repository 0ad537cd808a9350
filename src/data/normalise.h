// Whether two problems are the same. Texts are compared after collapsing white space and folding
// case; near-duplicates by their common word 5-grams, which do not depend on formatting ($x$ or
// \(x\)).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace antisd::inline data {

// Unicode white space collapsed to one space and trimmed, case folded.
std::string normalised_text(std::string_view text);

// Hashes of the text's words in order: runs of letters and digits after folding; every Han, Kana or
// Hangul character is its own word; other characters separate words.
std::vector<std::uint64_t> word_hashes(std::string_view text);

// Distinct hashes of all runs of `n` words, sorted; none where the text has fewer words.
std::vector<std::uint64_t> word_ngrams(std::string_view text, std::size_t n);

// Unicode characters, not bytes.
std::int64_t count_characters(std::string_view text);

}  // namespace antisd::inline data
