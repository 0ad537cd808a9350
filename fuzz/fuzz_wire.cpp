// libFuzzer: what the graders read from processes that run untrusted code. The first byte selects
// the source: the tests' results, the interpreter's messages, or a reward command's answers. Only
// RunError is thrown; results do not depend on how the bytes are split; a reward is finite.
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "core/error.h"
#include "core/utf8.h"
#include "reward/code/run.h"
#include "reward/command_reward.h"

namespace {

using antisd::TestRun;

bool same(const TestRun& a, const TestRun& b) {
  if (a.results.size() != b.results.size()) return false;
  for (std::size_t i = 0; i < a.results.size(); ++i)
    if (a.results[i].passed != b.results[i].passed || a.results[i].reason != b.results[i].reason)
      return false;
  return a.complete == b.complete && a.broken == b.broken;
}

void read_as_results(const std::string& text) {
  TestRun whole, pieces;
  std::string buffer = text;
  antisd::read_results(buffer, whole);
  if (buffer.find('\n') != std::string::npos) std::abort();
  std::string part;
  for (std::size_t at = 0; at < text.size(); at += 1 + at % 7) {
    part += text.substr(at, 1 + at % 7);
    antisd::read_results(part, pieces);
  }
  if (part != buffer || !same(whole, pieces)) std::abort();
  for (const TestRun::Result& result : whole.results)
    if (antisd::find_invalid_utf8(result.reason)) std::abort();
}

void read_as_message(const std::string& text) {
  try {
    const antisd::Json message = antisd::read_zygote_message(text);
    if (message.contains("started")) (void)message["started"].get<std::vector<int>>();
    if (message.contains("failed")) (void)message["failed"].get<std::string>();
    if (message.contains("time")) (void)message["time"].get<double>();
    if (message.contains("ended"))
      (void)(message["ended"].get<int>() + message["status"].get<std::int64_t>() +
             message["cpu"].get<double>());
  } catch (const antisd::RunError&) {
  }
}

void read_as_answers(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const antisd::RewardLine read = antisd::read_reward_line(line, 7);
    const antisd::Verdict& score = read.verdict;
    const bool judged =
        read.kind != antisd::RewardLine::kLog && read.kind != antisd::RewardLine::kOther;
    if (!score.usable()) std::abort();
    if (judged && !score.reward && score.reason.empty()) std::abort();
    if (score.reward && read.kind != antisd::RewardLine::kAnswer) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 't':
      read_as_results(text);
      break;
    case 'z':
      read_as_message(text);
      break;
    case 'c':
      read_as_answers(text);
      break;
    default:
      break;
  }
  return 0;
}
