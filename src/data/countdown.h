// The built-in task: combine given numbers with + - * (results 0 to 400) to reach a target from 10
// to 99. All text is space-separated words; each number is one word.
//
//   Numbers 4 11 3 6 target 29 | Let 4 + 11 = 15 ; 15 * 3 = 45 ; 45 - 6 = 39 no Wait
//   Let 6 - 3 = 3 ; 3 * 11 = 33 ; 33 - 4 = 29 holds So boxed 29
//
// Problems and documents are functions of (seed, step, index). Whether a problem is held out
// depends only on its numbers and target, so the training problems of one seed never include
// held-out problems of another.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.h"
#include "core/rng.h"
#include "data/problem.h"

namespace antisd::inline data {

inline constexpr int kCountdownMaxResult = 400;

struct CountdownStep {
  int left;
  char op;
  int right, result;
};

// One try: each step starts from the previous result.
using CountdownChain = std::vector<CountdownStep>;

struct CountdownExample {
  std::vector<int> numbers;  // in the order of the prompt
  int target = 0;
  CountdownChain solution;

  std::string problem_text() const;   // "Numbers 4 11 3 6 target 29"
  std::string solution_text() const;  // "Let 6 - 3 = 3 ; ... = 29 holds So boxed 29"
};

enum class CountdownSplit { kTrain, kHeldOut };

// One problem in ten is held out. The order of the numbers does not matter.
CountdownSplit countdown_split(std::vector<int> numbers, int target);

// A sequence of random numbers for one purpose.
class TaskDraws {
 public:
  TaskDraws(std::uint64_t seed, RandomPlace place)
      : rng_(seed, RandomStream::kTask), place_(place) {}
  int below(int bound) { return static_cast<int>(rng_.below(std::uint64_t(bound), next())); }
  bool chance(double probability) { return rng_.uniform(next()) < probability; }

 private:
  RandomPlace next() {
    ++place_.position;
    return place_;
  }
  CounterRng rng_;
  RandomPlace place_;
};

// 3 numbers from 2 to 20, or 4 from 2 to 12.
CountdownExample draw_countdown(TaskDraws& draws, int count, CountdownSplit split);

// A source by name: "countdown:3", "countdown:4:held-out:512", "countdown:3+4:train:8000:seed=7".
// Defaults: 5,000 training problems (512 held-out ones) of the default seed.
struct CountdownSource {
  std::vector<int> counts;  // 3, 4 or both alternately
  CountdownSplit split = CountdownSplit::kTrain;
  std::int64_t problems = 5'000;
  std::uint64_t seed = 0;

  // InputError that names the field.
  static CountdownSource parse(const std::string& text, std::uint64_t default_seed = 0);
  std::string name() const;  // "countdown-4-held-out", for ids and benchmarks
};

bool is_countdown_source(std::string_view text);

// Rows {id, problem, answer, solution, source}; no problem occurs twice, in any order of its
// numbers. InputError if there are not enough problems.
Json countdown_rows(const CountdownSource& source);

// A pre-training document.
struct CountdownDocument {
  std::string prompt, response;
  int numbers = 0;  // in the problem
};

// Document `index` of step `step`.
CountdownDocument countdown_document(const CountdownSource& source, const MixConfig& mix,
                                     std::uint32_t step, std::uint32_t index);

}  // namespace antisd::inline data
