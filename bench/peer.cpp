#include "bench/peer.h"

#include <cstdio>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "core/error.h"

namespace antisd::bench {
namespace {

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word)
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// NAME may be several words; the rate is the word before "tokens/s,".
double rate_of(const std::string& line) {
  std::istringstream words(line);
  double rate = 0;
  for (std::string word, before; words >> word; before = word)
    if (word == "tokens/s,") rate = std::stod(before);
  return rate;
}

}  // namespace

void print_peers(const std::string& python, const std::string& script,
                 const std::vector<std::string>& arguments, double tokens_per_s) {
  if (!std::filesystem::exists(script)) {
    throw InputError("the peer's script is not there",
                     {.where = script, .remedy = "run this in the root of the repository"});
  }
  std::string command = quoted(python) + " " + script;
  for (const std::string& argument : arguments)
    command += " " + quoted(argument);
  FILE* output = popen(command.c_str(), "r");
  if (output == nullptr) throw RunError("the peer could not be started", {.where = command});
  char line[4096];
  while (std::fgets(line, sizeof line, output) != nullptr) {
    std::string text = line;
    while (!text.empty() && text.back() == '\n')
      text.pop_back();
    const double rate = rate_of(text);
    fmt::print("  {}{}\n", text,
               rate > 0 ? fmt::format("; ours is {:.2f} times that", tokens_per_s / rate) : "");
  }
  if (pclose(output) != 0) {
    throw RunError("the peer failed",
                   {.where = command, .remedy = "give a Python that has torch and transformers"});
  }
}

}  // namespace antisd::bench
