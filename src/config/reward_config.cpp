// The section [reward]: its keys, the terms that are added to the grader's reward, and checks
// across keys.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/run_config.h"
#include "core/error.h"
#include "core/nearest.h"

namespace antisd::inline config {
namespace {

// The kinds of terms. An argument follows those that need one.
struct TermKind {
  const char* name;
  bool has_argument;
};
constexpr std::array kTermKinds = {TermKind{"python", true},    TermKind{"command", true},
                                   TermKind{"format", true},    TermKind{"length", true},
                                   TermKind{"math", false},     TermKind{"code", false},
                                   TermKind{"countdown", false}};
constexpr std::string_view kBlanks = " \t";
constexpr const char* kOwnName = "grader";  // of the grader's own reward among the parts of a sum

// It becomes the end of a metric's name.
bool is_term_name(std::string_view name) {
  return !name.empty() && name != kOwnName && std::ranges::all_of(name, [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '_' || letter == '-';
  });
}

RewardTerm read_term(const std::string& name, const std::string& text) {
  const std::string where = "reward.terms." + name;
  if (!is_term_name(name)) {
    throw InputError(fmt::format("'{}' cannot be the name of a term", name),
                     {.where = "reward.terms",
                      .remedy = "use letters, digits, _ and -, and not the name grader"});
  }
  const std::size_t end = std::min(text.find_first_of(kBlanks), text.size());
  const std::size_t rest = std::min(text.find_first_not_of(kBlanks, end), text.size());
  RewardTerm term{.name = name, .kind = text.substr(0, end), .argument = text.substr(rest)};
  const auto kind = std::ranges::find_if(
      kTermKinds, [&](const TermKind& known) { return term.kind == known.name; });
  if (kind == kTermKinds.end()) {
    std::vector<std::string> names;
    for (const TermKind& known : kTermKinds)
      names.emplace_back(known.name);
    throw InputError(
        fmt::format("'{}' is not a kind of term", term.kind),
        {.where = where, .remedy = fmt::format("begin with one of {}", fmt::join(names, ", "))});
  }
  if (kind->has_argument == term.argument.empty()) {
    throw InputError(fmt::format("a term of kind {} {} an argument", term.kind,
                                 kind->has_argument ? "needs" : "does not take"),
                     {.where = where,
                      .remedy = "write for example \"python style.py:score\", \"format "
                                "<think>.*</think>.*\", \"length tokens 1000 4000\" or \"math\""});
  }
  return term;
}

double weight_of(const std::string& name, const Scalar& value) {
  if (const double* number = std::get_if<double>(&value)) return *number;
  if (const std::int64_t* number = std::get_if<std::int64_t>(&value))
    return static_cast<double>(*number);
  throw InputError("the weight is not a number",
                   {.where = "reward.weights." + name, .remedy = "give a number such as 0.2"});
}

}  // namespace

std::vector<RewardTerm> reward_terms(const RewardConfig& config) {
  std::vector<RewardTerm> terms;
  std::vector<std::string> names;
  for (const auto& [name, text] : config.terms) {
    terms.push_back(read_term(name, text));
    names.push_back(name);
  }
  for (const auto& [name, value] : config.weights) {
    const auto term = std::ranges::find(terms, name, &RewardTerm::name);
    if (term == terms.end()) {
      const std::string near = nearest_name(name, names);
      throw InputError(
          fmt::format("reward.terms has no '{}'", name),
          {.where = "reward.weights",
           .remedy = !near.empty() ? fmt::format("did you mean '{}'?", near)
                                   : "name terms; the grader's own weight is reward.weight"});
    }
    term->weight = weight_of(name, value);
  }
  return terms;
}

void RunConfig::describe_reward() {
  OptionSet& o = options_;
  o.add("reward.kind", reward.kind, "the grader")
      .one_of({"math", "code", "countdown", "command", "python"})
      .common_in({"train", "sweep", "eval"});
  o.add("reward.command", reward.command, "program and arguments for reward.kind = \"command\"")
      .common_in({"eval"});
  o.add("reward.function", reward.function,
        "FILE.py:FUNCTION for reward.kind = \"python\": a reward function as TRL or verl call it")
      .common_in({"train", "sweep", "eval"});
  o.add("reward.python", reward.python,
        "the Python that runs reward functions; unless set, the one that the variable "
        "ANTISD_PYTHON names, or python3");
  o.add("reward.correct_at", reward.correct_at,
        "from this reward of the grader on, a response is correct: for the teacher's choice of "
        "peers, its feedback, and evaluations");
  o.add("reward.truncated", reward.truncated,
        "the reward of a response that reached the length limit, which no grader sees");
  o.add("reward.relative_tolerance", reward.relative_tolerance,
        "math accepts numbers this close to the known answer, relative to it; 0 is exact")
      .between(0, 1);
  o.add("reward.weight", reward.weight, "weight of the grader's own reward in the sum with terms");
  o.add("reward.terms", reward.terms,
        "rewards that are added to the grader's: name = \"KIND ARGUMENT\" with python "
        "FILE.py:FUNCTION, command PROGRAM, format REGEX (1 if the whole response matches), length "
        "tokens|characters FROM TO (0 up to FROM, 1 from TO on), math, code or countdown");
  o.add("reward.weights", reward.weights,
        "weights of reward.terms by their names; 1 unless named here; negative is a penalty");
  o.add("reward.memory_mb", reward.memory_mb,
        "MiB of memory for each process of a Python reward; 0 is no limit")
      .between(0, 1 << 30);
  o.add("reward.timeout_s", reward.timeout_s,
        "time limit per grade, or per call of a Python function, in seconds of wall-clock time")
      .above(0);
  o.add("reward.give_up_after", reward.give_up_after,
        "end the run after this many consecutive steps without a single grade")
      .at_least(1);
  o.add("reward.workers", reward.workers, "grading processes or threads; 0 is one per core")
      .at_least(0);
  o.add("reward.sandbox", reward.sandbox,
        "auto isolates graded code as strongly as the machine allows and fails where it cannot; "
        "reduced does without namespaces; none runs graded code unprotected")
      .one_of({"auto", "reduced", "none"});
  o.add("reward.kl_coef", reward.kl_coef,
        "the reward of a response is lowered by this times the KL divergence from the frozen "
        "reference model, summed over its tokens (loss.kl_estimator); 0: no reference is kept")
      .at_least(0);
  o.add("reward.overlong_tokens", reward.overlong_tokens,
        "the reward falls linearly over the last so many tokens before "
        "rollout.max_sequence_tokens (DAPO's soft punishment); 0 is off")
      .at_least(0);
  o.add("reward.overlong_penalty", reward.overlong_penalty,
        "by how much the reward has fallen at rollout.max_sequence_tokens")
      .at_least(0);
}

void RunConfig::validate_reward() const {
  if (reward.kind == "command" && reward.command.empty()) {
    throw InputError("reward.kind = \"command\" without reward.command",
                     {.remedy = "name the program that grades"});
  }
  if (reward.kind == "python" && reward.function.empty()) {
    throw InputError("reward.kind = \"python\" without reward.function",
                     {.remedy = "name the function that grades, as FILE.py:FUNCTION"});
  }
  reward_terms(reward);
}

}  // namespace antisd::inline config
