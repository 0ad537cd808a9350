// `antisd-bench tokenize`: how fast a tokenizer encodes texts one by one on one thread, and how it
// bears a megabyte of one letter, of white space and of digits.
//
//   tokenize --model DIR --texts FILE.jsonl [--field problem] [--repeats 3] [--json]
//
// tools/bench_tokenize_peer.py measures PyPI tokenizers in the same way.
#pragma once

#include <string>
#include <vector>

namespace antisd::bench {

int run_tokenize(const std::vector<std::string>& arguments);

}  // namespace antisd::bench
