// The built-in task: combine given numbers with + - * (results 0 to 400) to reach a target from 10
// to 99. Everything is space-separated words, each number one of them.
//
//   Numbers 4 11 3 6 target 29 | Let 4 + 11 = 15 ; 15 * 3 = 45 ; 45 - 6 = 39 no Wait
//   Let 6 - 3 = 3 ; 3 * 11 = 33 ; 33 - 4 = 29 holds So boxed 29
//
// Problems and documents are functions of (seed, step, index). Whether a problem is held out is a
// function of its numbers and target alone, so no seed's training problems meet any seed's
// held-out ones.
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

// One try: each step goes on from the result before.
using CountdownChain = std::vector<CountdownStep>;

struct CountdownExample {
  std::vector<int> numbers;  // in the order of the prompt
  int target = 0;
  CountdownChain solution;

  std::string problem_text() const;   // "Numbers 4 11 3 6 target 29"
  std::string solution_text() const;  // "Let 6 - 3 = 3 ; ... = 29 holds So boxed 29"
};

enum class CountdownSplit { kTrain, kHeldOut };

// One problem in ten. The order of the numbers does not matter.
CountdownSplit countdown_split(std::vector<int> numbers, int target);

// Numbers of one purpose, drawn one after the other.
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
// By default training problems, 5,000 of them (512 held-out ones), of the default seed.
struct CountdownSource {
  std::vector<int> counts;  // 3, 4 or both in turn
  CountdownSplit split = CountdownSplit::kTrain;
  std::int64_t problems = 5'000;
  std::uint64_t seed = 0;

  // InputError naming the field.
  static CountdownSource parse(const std::string& text, std::uint64_t default_seed = 0);
  std::string name() const;  // "countdown-4-held-out", for ids and benchmarks
};

bool is_countdown_source(std::string_view text);

// Rows {id, problem, answer, solution, source}; no problem comes twice, whatever the order of its
// numbers. InputError where there are not so many.
Json countdown_rows(const CountdownSource& source);

// What the model is pre-trained on.
struct CountdownDocument {
  std::string prompt, response;
  int numbers = 0;  // of the problem
};

// Document `index` of step `step`.
CountdownDocument countdown_document(const CountdownSource& source, const MixConfig& mix,
                                     std::uint32_t step, std::uint32_t index);

}  // namespace antisd::inline data
