#include "reward/countdown_grader.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <string>

#include "core/error.h"
#include "reward/visible_text.h"

namespace antisd::inline reward {
namespace {

constexpr std::size_t kMaxBoxBytes = 2'000;
constexpr int kMaxNesting = 50;

// Words, numbers and single characters; LaTeX and Unicode multiplication signs become "*".
std::vector<std::string_view> tokenize(std::string_view text) {
  std::vector<std::string_view> tokens;
  std::size_t at = 0;
  const auto is = [](char c, auto low, auto high) { return c >= low && c <= high; };
  while (at < text.size()) {
    const char c = text[at];
    std::size_t end = at + 1;
    if (is(c, '0', '9')) {
      while (end < text.size() && is(text[end], '0', '9'))
        ++end;
    } else if (is(c, 'a', 'z') || is(c, 'A', 'Z') || c == '\\') {
      while (end < text.size() && (is(text[end], 'a', 'z') || is(text[end], 'A', 'Z')))
        ++end;
    } else if (text.substr(at, 2) == "×" || text.substr(at, 2) == "·") {
      tokens.push_back("*");
      at += 2;
      continue;
    }
    const std::string_view token = text.substr(at, end - at);
    if (token == "\\times" || token == "\\cdot")
      tokens.push_back("*");
    else if (c != ' ' && c != '\n' && c != '\t' && c != '\r' && c != '$')
      tokens.push_back(token);
    at = end;
  }
  return tokens;
}

std::optional<int> to_integer(std::string_view token) {
  int value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (error != std::errc() || end != token.data() + token.size() || token.empty())
    return std::nullopt;
  return value;
}

// The result of one operation, or nothing if it is outside the allowed range.
std::optional<int> apply(int a, char op, int b, int max_result) {
  const long long result = op == '+' ? 0LL + a + b : op == '-' ? 0LL + a - b : 1LL * a * b;
  if (result < 0 || result > max_result) return std::nullopt;
  return static_cast<int>(result);
}

struct Step {
  int left, right, result;
  char op;
};

bool is_operator(std::string_view token) {
  return token == "+" || token == "-" || token == "*";
}

// The steps of the chain after `Let` at tokens[at]; empty if one is malformed.
std::vector<Step> read_chain(const std::vector<std::string_view>& tokens, std::size_t at,
                             std::size_t end) {
  std::vector<Step> steps;
  while (at + 5 <= end) {
    const auto left = to_integer(tokens[at]), right = to_integer(tokens[at + 2]),
               result = to_integer(tokens[at + 4]);
    if (!left || !right || !result || !is_operator(tokens[at + 1]) || tokens[at + 3] != "=")
      return {};
    steps.push_back({*left, *right, *result, tokens[at + 1][0]});
    at += 5;
    if (at >= end || tokens[at] != ";") return steps;
    ++at;
  }
  return {};
}

bool remove_one(std::vector<int>& values, int value) {
  const auto found = std::find(values.begin(), values.end(), value);
  if (found == values.end()) return false;
  values.erase(found);
  return true;
}

// Why a chain is not a solution; empty if it is one.
std::string chain_fault(const CountdownProblem& problem, const std::vector<Step>& steps,
                        const CountdownOptions& options) {
  std::vector<int> available = problem.numbers;
  for (const Step& step : steps) {
    if (!remove_one(available, step.left) || !remove_one(available, step.right))
      return "a step uses a number that is not available";
    if (apply(step.left, step.op, step.right, options.max_result) != step.result)
      return "a step is wrong";
    available.push_back(step.result);
  }
  if (steps.back().result != problem.target) return "the chain misses the target";
  if (!options.at_most_once && available.size() != 1) return "a number is left over";
  return "";
}

// Recursive descent over + - * and brackets; each given number is used where it occurs.
class InfixReader {
 public:
  InfixReader(const std::vector<std::string_view>& tokens, std::vector<int> available,
              int max_result)
      : tokens_(tokens), available_(std::move(available)), max_result_(max_result) {}

  std::optional<int> read() {
    const std::optional<int> value = sum(0);
    if (value && at_ < tokens_.size() && tokens_[at_] == "=" && at_ + 2 == tokens_.size()) {
      if (to_integer(tokens_[at_ + 1]) != value) return std::nullopt;
      at_ = tokens_.size();
    }
    return at_ == tokens_.size() ? value : std::nullopt;
  }
  const std::vector<int>& left_over() const { return available_; }

 private:
  bool at(std::string_view token) const { return at_ < tokens_.size() && tokens_[at_] == token; }

  std::optional<int> sum(int depth) {
    std::optional<int> value = product(depth);
    while (value && (at("+") || at("-"))) {
      const char op = tokens_[at_++][0];
      const std::optional<int> next = product(depth);
      value = next ? apply(*value, op, *next, max_result_) : std::nullopt;
    }
    return value;
  }

  std::optional<int> product(int depth) {
    std::optional<int> value = factor(depth);
    while (value && at("*")) {
      ++at_;
      const std::optional<int> next = factor(depth);
      value = next ? apply(*value, '*', *next, max_result_) : std::nullopt;
    }
    return value;
  }

  std::optional<int> factor(int depth) {
    if (at_ >= tokens_.size() || depth > kMaxNesting) return std::nullopt;
    if (at("(")) {
      ++at_;
      const std::optional<int> value = sum(depth + 1);
      if (!at(")")) return std::nullopt;
      ++at_;
      return value;
    }
    const std::optional<int> number = to_integer(tokens_[at_]);
    if (!number || !remove_one(available_, *number)) return std::nullopt;
    ++at_;
    return number;
  }

  const std::vector<std::string_view>& tokens_;
  std::vector<int> available_;
  int max_result_;
  std::size_t at_ = 0;
};

// Where the last box starts, and its content.
struct Box {
  std::size_t begin;
  std::string_view content;
};

std::optional<Box> find_box(std::string_view text) {
  const std::size_t word = text.rfind("boxed");
  if (word == std::string_view::npos) return std::nullopt;
  const std::size_t begin = word > 0 && text[word - 1] == '\\' ? word - 1 : word;
  std::string_view content = text.substr(word + 5);
  if (content.starts_with("{"))
    content = content.substr(1, content.rfind('}') - 1);
  else
    content = content.substr(0, content.find('\n'));
  return Box{begin, content.substr(0, kMaxBoxBytes)};
}

}  // namespace

CountdownProblem parse_countdown_problem(std::string_view text) {
  const std::vector<std::string_view> tokens = tokenize(text);
  CountdownProblem problem;
  for (std::size_t k = 0; k < tokens.size(); ++k) {
    if (tokens[k] != "Numbers") continue;
    problem.numbers.clear();
    for (++k; k < tokens.size() && tokens[k] != "target"; ++k) {
      const std::optional<int> number = to_integer(tokens[k]);
      if (!number) break;
      problem.numbers.push_back(*number);
    }
    if (k + 1 >= tokens.size() || tokens[k] != "target" || problem.numbers.empty()) continue;
    const std::optional<int> target = to_integer(tokens[k + 1]);
    if (!target) continue;
    problem.target = *target;
    return problem;
  }
  throw InputError("the problem has no numbers and target",
                   {.remedy = "write it as: Numbers 4 11 3 6 target 29"});
}

CountdownProblem read_countdown_problem(const Json& problem) {
  if (problem.is_string()) return parse_countdown_problem(problem.get_ref<const std::string&>());
  const auto small = [](const Json& value) {
    return value.is_number_integer() && value.get<long long>() >= 0 &&
           value.get<long long>() <= 1'000'000;
  };
  const bool shape = problem.is_object() && problem.contains("numbers") &&
                     problem.contains("target") && problem["numbers"].is_array() &&
                     !problem["numbers"].empty() && small(problem["target"]) &&
                     std::all_of(problem["numbers"].begin(), problem["numbers"].end(), small);
  if (!shape)
    throw InputError("the problem is neither text nor numbers and target",
                     {.remedy = R"(write it as {"numbers": [4, 11, 3, 6], "target": 29})"});
  return {problem["numbers"].get<std::vector<int>>(), problem["target"].get<int>()};
}

Verdict grade_countdown(const CountdownProblem& problem, std::string_view response,
                        const CountdownOptions& options) {
  const std::string visible = visible_text(response);
  const std::string_view text = visible;
  const std::optional<Box> box = find_box(text);
  if (!box) return wrong_verdict("", "no answer found");

  std::vector<std::string_view> inside = tokenize(box->content);
  // Without braces the box ends at the next word.
  const auto word = std::find_if(inside.begin(), inside.end(), [](std::string_view token) {
    return std::isalpha(static_cast<unsigned char>(token[0])) != 0;
  });
  inside.erase(word, inside.end());
  std::string extracted;
  for (const std::string_view token : inside) {
    if (!extracted.empty()) extracted += ' ';
    extracted += token;
  }
  if (inside.empty()) return wrong_verdict("", "no answer found");

  const bool infix = std::any_of(inside.begin(), inside.end(), is_operator);
  if (infix) {
    InfixReader reader(inside, problem.numbers, options.max_result);
    const std::optional<int> value = reader.read();
    if (!value)
      return wrong_verdict(extracted, "the box holds no valid expression over the numbers");
    if (*value != problem.target)
      return wrong_verdict(extracted, "the expression misses the target");
    if (!options.at_most_once && !reader.left_over().empty())
      return wrong_verdict(extracted, "a number is left over");
    return right_verdict(extracted);
  }
  if (to_integer(inside[0]) != problem.target)
    return wrong_verdict(extracted, "the box does not hold the target");

  const std::vector<std::string_view> tokens = tokenize(text.substr(0, box->begin));
  std::size_t end = tokens.size();
  for (std::size_t at = tokens.size(); at-- > 0;) {
    if (tokens[at] != "Let") continue;
    const std::vector<Step> steps = read_chain(tokens, at + 1, end);
    end = at;
    if (steps.empty()) continue;
    const std::string fault = chain_fault(problem, steps, options);
    if (!fault.empty()) return wrong_verdict(extracted, fault);
    return right_verdict(extracted);
  }
  return wrong_verdict(extracted, "no complete chain before the box");
}

}  // namespace antisd::inline reward
