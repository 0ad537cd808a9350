// Lengths of prompts and responses, drawn from two numbers or taken from a run.
//
//   const Lengths lengths = Lengths::drawn(parse_lengths("mean=8000,p99=32000"), /*seed=*/0);
//   const std::vector<GroupLengths> step = lengths.groups(32, 8, /*longest=*/32'768);
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace antisd::inline plan {

inline constexpr std::int64_t kPromptTokens = 256;  // of a prompt, where nothing is known

// A log-normal distribution of response lengths by its mean and the length that 99 % do not exceed.
struct LengthSpec {
  double mean = 0, p99 = 0;
  std::int64_t prompt = kPromptTokens;
};

// "mean=8000,p99=32000" or with ",prompt=300". InputError, also for what no log-normal
// distribution has.
LengthSpec parse_lengths(const std::string& text);

struct GroupLengths {
  std::int64_t prompt = 0;
  std::vector<std::int64_t> responses;
};

class Lengths {
 public:
  static Lengths drawn(const LengthSpec& spec, std::uint64_t seed);
  // Where nothing is known: a quarter of the limit on average, 1 % at the limit.
  static Lengths within(std::int64_t longest, std::int64_t prompt, std::uint64_t seed);
  // Of the responses that the run recorded (rollouts/), else by the mean and the maximum of its
  // metrics. InputError if it has neither.
  static Lengths of_run(const std::filesystem::path& run, std::uint64_t seed);

  // No sequence is longer than `longest`. `salt`: draws with another one differ.
  std::vector<GroupLengths> groups(std::int64_t prompts, std::int64_t samples, std::int64_t longest,
                                   std::uint32_t salt = 0) const;

  const std::string& text() const { return text_; }

 private:
  GroupLengths draw(std::uint32_t prompt, std::int64_t samples, std::uint32_t salt) const;

  LengthSpec spec_;
  std::vector<GroupLengths> recorded_;  // if not empty, groups are drawn from these
  std::uint64_t seed_ = 0;
  std::string text_;
};

}  // namespace antisd::inline plan
