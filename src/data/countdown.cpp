#include "data/countdown.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>
#include <xxhash.h>

#include "core/error.h"

namespace antisd::inline data {
namespace {

constexpr std::string_view kPrefix = "countdown:";
constexpr int kLeastNumber = 2, kLeastTarget = 10, kGreatestTarget = 99;
constexpr std::int64_t kDefaultHeldOut = 512, kMaxProblems = 1'000'000;
constexpr std::uint64_t kHeldOutEvery = 10;

// Draws that must not share random numbers: the `sample` of their place.
enum Purpose : std::uint32_t { kProblems = 0, kDocuments = 1 };

int greatest_number(int count) {
  return count == 3 ? 20 : 12;
}

int apply(int a, char op, int b) {
  return op == '+' ? a + b : op == '-' ? a - b : a * b;
}

std::string chain_text(const CountdownChain& chain) {
  std::string text = "Let ";
  for (const CountdownStep& step : chain) {
    if (&step != chain.data()) text += " ; ";
    fmt::format_to(std::back_inserter(text), "{} {} {} = {}", step.left, step.op, step.right,
                   step.result);
  }
  return text;
}

// A random order of the numbers, and for each step an operation whose result is allowed.
CountdownChain draw_chain(TaskDraws& draws, std::vector<int> numbers) {
  for (std::size_t i = numbers.size(); i > 1; --i)
    std::swap(numbers[i - 1], numbers[std::size_t(draws.below(int(i)))]);
  CountdownChain chain;
  chain.reserve(numbers.size() - 1);
  int value = numbers[0];
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    char allowed[3];
    int count = 0;
    for (const char op : {'+', '-', '*'}) {
      const int result = apply(value, op, numbers[i]);
      if (result >= 0 && result <= kCountdownMaxResult) allowed[count++] = op;
    }
    const char op = allowed[draws.below(count)];
    chain.push_back({value, op, numbers[i], apply(value, op, numbers[i])});
    value = chain.back().result;
  }
  return chain;
}

// Tries until one reaches the target or the search gives up.
std::string draw_search(TaskDraws& draws, const CountdownExample& example, const MixConfig& mix,
                        double persistence, double hint) {
  std::string text;
  for (std::int64_t tries = 1;; ++tries) {
    const CountdownChain chain =
        draws.chance(hint) ? example.solution : draw_chain(draws, example.numbers);
    const int result = chain.back().result;
    const bool holds = result == example.target;
    text += chain_text(chain) + (holds ? " holds" : " no");
    const bool go_on = draws.chance(holds ? mix.go_on : persistence);
    if (!go_on || tries == mix.max_tries) return text + fmt::format(" So boxed {}", result);
    text += " Wait ";
  }
}

// The order of the numbers does not matter.
std::string key_of(std::vector<int> numbers, int target) {
  std::sort(numbers.begin(), numbers.end());
  return fmt::format("{} target {}", fmt::join(numbers, " "), target);
}

template <typename Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

[[noreturn]] void refuse(const std::string& source, std::string_view field) {
  throw InputError(fmt::format("'{}' is not part of a countdown source", field),
                   {.where = source,
                    .remedy = "write countdown:3, countdown:4 or countdown:3+4, then any of "
                              ":held-out, :COUNT (1 to 1000000) and :seed=N"});
}

}  // namespace

std::string CountdownExample::problem_text() const {
  return fmt::format("Numbers {} target {}", fmt::join(numbers, " "), target);
}

std::string CountdownExample::solution_text() const {
  return fmt::format("{} holds So boxed {}", chain_text(solution), target);
}

CountdownSplit countdown_split(std::vector<int> numbers, int target) {
  const std::string key = key_of(std::move(numbers), target);
  return XXH3_64bits(key.data(), key.size()) % kHeldOutEvery == 0 ? CountdownSplit::kHeldOut
                                                                  : CountdownSplit::kTrain;
}

CountdownExample draw_countdown(TaskDraws& draws, int count, CountdownSplit split) {
  CountdownExample example;
  do {
    example.numbers.clear();
    for (int i = 0; i < count; ++i)
      example.numbers.push_back(kLeastNumber +
                                draws.below(greatest_number(count) - kLeastNumber + 1));
    example.solution = draw_chain(draws, example.numbers);
    example.target = example.solution.back().result;
  } while (example.target < kLeastTarget || example.target > kGreatestTarget ||
           countdown_split(example.numbers, example.target) != split);
  return example;
}

bool is_countdown_source(std::string_view text) {
  return text.starts_with(kPrefix);
}

CountdownSource CountdownSource::parse(const std::string& text, std::uint64_t default_seed) {
  CountdownSource source;
  source.seed = default_seed;
  std::string_view rest = text;
  if (!is_countdown_source(text)) refuse(text, text);
  rest.remove_prefix(kPrefix.size());
  bool counted = false;
  for (bool first = true; first || !rest.empty(); first = false) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    const std::string_view field = rest.substr(0, colon);
    rest.remove_prefix(std::min(colon + 1, rest.size()));
    if (first) {
      if (field == "3" || field == "3+4" || field == "4+3") source.counts.push_back(3);
      if (field == "4" || field == "3+4" || field == "4+3") source.counts.push_back(4);
      if (source.counts.empty()) refuse(text, field);
    } else if (field == "train") {
      source.split = CountdownSplit::kTrain;
    } else if (field == "held-out") {
      source.split = CountdownSplit::kHeldOut;
    } else if (field.starts_with("seed=")) {
      if (!read_number(field.substr(5), source.seed)) refuse(text, field);
    } else {
      counted = true;
      if (!read_number(field, source.problems) || source.problems < 1 ||
          source.problems > kMaxProblems)
        refuse(text, field);
    }
  }
  if (!counted && source.split == CountdownSplit::kHeldOut) source.problems = kDefaultHeldOut;
  return source;
}

std::string CountdownSource::name() const {
  return fmt::format("countdown-{}{}", fmt::join(counts, "-"),
                     split == CountdownSplit::kHeldOut ? "-held-out" : "");
}

Json countdown_rows(const CountdownSource& source) {
  // After this many draws without a new problem, assume that none is left.
  const std::int64_t patience = 20'000;
  Json rows = Json::array();
  std::set<std::string> seen;
  std::int64_t in_vain = 0;
  for (std::uint32_t index = 0; std::ssize(rows) < source.problems; ++index) {
    TaskDraws draws(source.seed, {.prompt = index, .sample = kProblems});
    const CountdownExample example =
        draw_countdown(draws, source.counts[rows.size() % source.counts.size()], source.split);
    if (!seen.insert(key_of(example.numbers, example.target)).second) {
      if (++in_vain < patience) continue;
      throw InputError(fmt::format("there are only about {} different problems", rows.size()),
                       {.where = source.name(), .remedy = "ask for fewer"});
    }
    in_vain = 0;
    rows.push_back({{"id", fmt::format("{}-{}", source.name(), rows.size() + 1)},
                    {"problem", example.problem_text()},
                    {"answer", std::to_string(example.target)},
                    {"solution", example.solution_text()},
                    {"source", source.name()}});
  }
  return rows;
}

CountdownDocument countdown_document(const CountdownSource& source, const MixConfig& mix,
                                     std::uint32_t step, std::uint32_t index) {
  TaskDraws draws(source.seed, {.step = step, .prompt = index, .sample = kDocuments});
  const int count = source.counts[std::size_t(draws.below(int(source.counts.size())))];
  const CountdownExample example = draw_countdown(draws, count, source.split);
  if (draws.chance(mix.plain)) {
    return {example.problem_text() + " |",
            draw_search(draws, example, mix, mix.persistence, /*hint=*/0), count};
  }
  // Either word, whatever the response: the assessment must not predict what follows.
  const char* assessment = draws.chance(0.5) ? "correct" : "incorrect";
  CountdownDocument document{
      fmt::format("{} Previous attempt {} Assessment {} Solve |", example.problem_text(),
                  example.solution_text(), assessment),
      "", count};
  document.response = draws.chance(mix.copy)
                          ? example.solution_text()
                          : draw_search(draws, example, mix, mix.hinted_persistence, mix.hint);
  return document;
}

}  // namespace antisd::inline data
