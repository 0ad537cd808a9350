// The same work by another program in the same run: only then are the figures comparable.
#pragma once

#include <string>
#include <vector>

namespace antisd::bench {

// Runs a script of tools/ with `python` and prints its lines, each `NAME RATE tokens/s, ...`, with
// the ratio of our rate to it. RunError if the script fails, e.g. because transformers is not
// installed for that Python.
void print_peers(const std::string& python, const std::string& script,
                 const std::vector<std::string>& arguments, double tokens_per_s);

}  // namespace antisd::bench
