#include "reward/grader.h"

#include "core/check.h"
#include "core/thread_pool.h"
#include "reward/code/extract.h"
#include "reward/code/grader.h"
#include "reward/command_reward.h"
#include "reward/countdown_grader.h"
#include "reward/math/grader.h"

namespace antisd::inline reward {
namespace {

class MathReward : public Grader {
 public:
  Verdict grade(const GradeRequest& request) override {
    return grade_math(request.answer, request.response);
  }
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

}  // namespace

GradeRequest grade_request(const Problem& problem, std::string response) {
  return {.response = std::move(response),
          .answer = problem.answer,
          .tests = problem.tests,
          .problem = prompt_text(problem),
          .row = problem.row,
          .id = problem.id};
}

bool gets_whole_rows(const RewardConfig& config) {
  return config.kind == "command";
}

std::unique_ptr<Grader> make_grader(const RewardConfig& config) {
  const int workers = config.workers > 0 ? static_cast<int>(config.workers) : available_threads();
  if (config.kind == "math") return std::make_unique<MathReward>();
  if (config.kind == "countdown") return std::make_unique<CountdownReward>();
  if (config.kind == "code") {
    return std::make_unique<CodeReward>(CodeGraderOptions{
        .timeout_s = config.timeout_s, .sandbox = config.sandbox, .workers = workers});
  }
  ANTISD_CHECK_EQ(config.kind, "command");
  return std::make_unique<ProgramReward>(CommandRewardOptions{
      .command = config.command, .timeout_s = config.timeout_s, .workers = workers});
}

}  // namespace antisd::inline reward
