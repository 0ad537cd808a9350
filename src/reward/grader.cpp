#include "reward/grader.h"

#include <algorithm>

#include "core/check.h"
#include "core/error.h"
#include "core/thread_pool.h"
#include "reward/code/extract.h"
#include "reward/code/grader.h"
#include "reward/command_reward.h"
#include "reward/countdown_grader.h"
#include "reward/math/grader.h"
#include "reward/python_reward.h"
#include "reward/reward_sum.h"
#include "reward/text_terms.h"

namespace antisd::inline reward {
namespace {

class MathReward : public Grader {
 public:
  explicit MathReward(const MathGraderOptions& options) : options_(options) {}

  Verdict grade(const GradeRequest& request) override {
    return grade_math(request.answer, request.response, options_);
  }

 private:
  MathGraderOptions options_;
};

class CountdownReward : public Grader {
 public:
  Verdict grade(const GradeRequest& request) override {
    return grade_countdown(read_countdown_problem(request.problem), request.response);
  }
};

class CodeReward : public Grader {
 public:
  explicit CodeReward(const CodeGraderOptions& options) : grader_(options) {}

  Verdict grade(const GradeRequest& request) override {
    const CodeGrade grade = grader_.grade(request.response, request.tests);
    std::string program = extract_python(request.response).value_or("");
    if (!grade.correct) return {.reason = grade.reason, .extracted = std::move(program)};
    const double share = grade.total == 0 ? 0.0 : static_cast<double>(grade.passed) / grade.total;
    return {*grade.correct ? 1.0 : share, grade.reason, grade.passed, grade.total,
            std::move(program)};
  }

 private:
  CodeGrader grader_;
};

class ProgramReward : public Grader {
 public:
  explicit ProgramReward(CommandRewardOptions options) : reward_(std::move(options)) {}

  Verdict grade(const GradeRequest& request) override {
    Verdict verdict = reward_.grade(row_of(request));
    // A user's program does not say what it extracted: the whole response is its answer.
    verdict.extracted = request.response;
    return verdict;
  }
  void probe(const GradeRequest& request) override { reward_.probe(row_of(request)); }
  std::vector<std::string> take_warnings() override { return reward_.take_warnings(); }

 private:
  static Json row_of(const GradeRequest& request) {
    Json row = {
        {"problem", request.problem}, {"answer", request.answer}, {"response", request.response}};
    if (!request.tests.is_null()) row["tests"] = request.tests;
    if (!request.id.empty()) row["row_id"] = request.id;
    if (request.row.is_object()) {
      for (const auto& [column, value] : request.row.items())
        row.emplace(column, Json(value));  // ours win
    }
    return row;
  }

  CommandReward reward_;
};

class FunctionReward : public Grader {
 public:
  explicit FunctionReward(PythonRewardOptions options) : reward_(std::move(options)) {}

  Verdict grade(const GradeRequest& request) override { return grade_group({&request, 1}).front(); }
  bool grades_groups() const override { return reward_.takes_batches(); }
  std::vector<Verdict> grade_group(std::span<const GradeRequest> requests) override {
    std::vector<Json> rows;
    for (const GradeRequest& request : requests)
      rows.push_back(row_of(request));
    std::vector<Verdict> verdicts = reward_.grade(rows);
    for (std::size_t i = 0; i < verdicts.size(); ++i)
      verdicts[i].extracted = requests[i].response;
    return verdicts;
  }
  void probe(const GradeRequest& request) override { reward_.probe(row_of(request)); }
  std::vector<std::string> take_warnings() override { return reward_.take_warnings(); }

 private:
  // The columns are as the file has them: a function that was written for them runs unchanged.
  static Json row_of(const GradeRequest& request) {
    Json columns = request.row.is_object() ? request.row : Json::object();
    columns.emplace("problem", Json(request.problem));
    columns.emplace("answer", Json(request.answer));
    return {{"prompt", request.messages.is_null() ? request.problem : request.messages},
            {"response", request.response},
            {"answer", request.answer},
            {"source", request.source},
            {"ids", request.has_ids ? Json(request.ids) : Json()},
            {"columns", std::move(columns)}};
  }

  PythonReward reward_;
};

// One grader of `kind`; `config` has what it needs.
std::unique_ptr<Grader> make_single(const RewardConfig& config, const std::string& kind) {
  const int workers = config.workers > 0 ? static_cast<int>(config.workers) : available_threads();
  if (kind == "math")
    return std::make_unique<MathReward>(
        MathGraderOptions{.relative_tolerance = config.relative_tolerance});
  if (kind == "countdown") return std::make_unique<CountdownReward>();
  if (kind == "code") {
    return std::make_unique<CodeReward>(CodeGraderOptions{
        .timeout_s = config.timeout_s, .sandbox = config.sandbox, .workers = workers});
  }
  if (kind == "python") {
    return std::make_unique<FunctionReward>(PythonRewardOptions{.function = config.function,
                                                                .python = config.python,
                                                                .timeout_s = config.timeout_s,
                                                                .memory_mb = config.memory_mb,
                                                                .workers = workers});
  }
  ANTISD_CHECK_EQ(kind, "command");
  return std::make_unique<ProgramReward>(CommandRewardOptions{
      .command = config.command, .timeout_s = config.timeout_s, .workers = workers});
}

WeightedTerm make_term(const RewardConfig& config, const RewardTerm& term) {
  RewardConfig own = config;
  own.command = own.function = term.argument;
  try {
    return {term.name, term.weight,
            term.kind == "format"   ? std::make_unique<FormatTerm>(term.argument)
            : term.kind == "length" ? std::make_unique<LengthTerm>(term.argument)
                                    : make_single(own, term.kind)};
  } catch (const InputError& error) {
    throw InputError(error.problem(),
                     {.where = "reward.terms." + term.name, .remedy = error.context().remedy});
  }
}

}  // namespace

std::vector<Verdict> Grader::grade_group(std::span<const GradeRequest> requests) {
  std::vector<Verdict> verdicts;
  for (const GradeRequest& request : requests)
    verdicts.push_back(grade(request));
  return verdicts;
}

GradeRequest grade_request(const Problem& problem, const Response& response) {
  Json messages;
  for (const ChatMessage& message : problem.messages)
    messages.push_back({{"role", message.role}, {"content", message.content}});
  return {.response = response.text,
          .answer = problem.answer,
          .tests = problem.tests,
          .problem = prompt_text(problem),
          .row = problem.row,
          .id = problem.id,
          .messages = std::move(messages),
          .source = problem.source,
          .ids = response.ids,
          .has_ids = true};
}

bool uses_grader(const RewardConfig& config, const std::string& kind) {
  return config.kind == kind || std::ranges::any_of(reward_terms(config), [&](const RewardTerm& t) {
           return t.kind == kind;
         });
}

bool gets_whole_rows(const RewardConfig& config) {
  return uses_grader(config, "command") || uses_grader(config, "python");
}

std::unique_ptr<Grader> make_grader(const RewardConfig& config) {
  std::unique_ptr<Grader> own = make_single(config, config.kind);
  if (config.terms.empty() && config.weight == 1 && config.correct_at == 1) return own;
  std::vector<WeightedTerm> terms;
  for (const RewardTerm& term : reward_terms(config))
    terms.push_back(make_term(config, term));
  return std::make_unique<RewardSum>(
      std::move(own), RewardSumOptions{.weight = config.weight, .correct_at = config.correct_at},
      std::move(terms));
}

}  // namespace antisd::inline reward
