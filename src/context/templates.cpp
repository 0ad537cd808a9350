#include "context/templates.h"

#include <vector>

#include <fmt/format.h>

#include "core/check.h"
#include "core/error.h"
#include "core/nearest.h"

namespace antisd::inline context {
namespace {

using Tasks = std::map<std::string, TaskTemplates, std::less<>>;

constexpr const char* kTeacher =
    "{prompt}\n\nYour previous attempt:\n{solution}\n\nPrevious assessment: {feedback}\n\n"
    "Now solve this problem step by step.";
constexpr const char* kAssessment = "Previous assessment: {feedback}\n\n";
constexpr const char* kTeacherWithoutSolution =
    "{prompt}\n\nPrevious assessment: {feedback}\n\nNow solve this problem step by step.";

const Tasks& tasks() {
  static const Tasks all = {
      {"math",
       {.student = "Solve the following math problem. Place the final answer in \\boxed{}.\n"
                   "{problem}",
        .teacher = kTeacher,
        .teacher_without_solution = kTeacherWithoutSolution,
        .answer = "The answer is \\boxed{{answer}}.",
        .correct = "Your answer is correct.",
        .incorrect = "Your answer is incorrect.",
        .passes = "",
        .solution_follows = "</think>",
        .assessment = kAssessment}},
      {"code",
       {.student = "You are a coding expert. Write a correct Python function that solves the "
                   "following problem; place the final code in a ```python block.\n{problem}",
        .teacher = kTeacher,
        .teacher_without_solution = kTeacherWithoutSolution,
        .answer = "The answer is \\boxed{{answer}}.",
        .correct = "Your code is correct.",
        .incorrect = "Your code is incorrect.",
        .passes = "Your code passes {passed} of {total} test cases.",
        .solution_follows = "</think>",
        .assessment = kAssessment}},
      // Words of the task's own vocabulary, and a bar where the response begins.
      {"countdown",
       {.student = "{problem} |",
        .teacher = "{problem} Previous attempt {solution} Assessment {feedback} Solve |",
        .teacher_without_solution = "{problem} Assessment {feedback} Solve |",
        .answer = "boxed {answer}",
        .correct = "correct",
        .incorrect = "incorrect",
        .passes = "",
        .solution_follows = "Wait",
        .assessment = "Assessment {feedback} "}},
  };
  return all;
}

bool has_place(std::string_view text, std::string_view name) {
  return text.find(fmt::format("{{{}}}", name)) != std::string_view::npos;
}

void check_places(const std::string& key, const std::string& text, bool with_solution) {
  const auto refuse = [&](const char* place) {
    throw InputError(fmt::format("the text has no {}", place),
                     {.where = "context.templates." + key,
                      .remedy = "add it; `antisd config --defaults` lists the placeholders"});
  };
  if (!has_place(text, "prompt") && !has_place(text, "problem")) refuse("{prompt} or {problem}");
  if (!has_place(text, "feedback")) refuse("{feedback}");
  if (with_solution && !has_place(text, "solution")) refuse("{solution}");
}

}  // namespace

const TaskTemplates& task_templates(std::string_view task) {
  const auto found = tasks().find(task);
  ANTISD_CHECK(found != tasks().end());
  return found->second;
}

TaskTemplates teacher_templates(const std::string& task, const StringMap& replacements) {
  constexpr const char* kSuffix = "_without_solution";
  std::vector<std::string> known;
  for (const auto& [name, _] : tasks()) {
    known.push_back(name);
    known.push_back(name + kSuffix);
  }
  TaskTemplates templates = task_templates(task);
  for (const auto& [key, text] : replacements) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      const std::string nearest = nearest_name(key, known);
      throw InputError(fmt::format("there is no teacher template '{}'", key),
                       {.where = "context.templates",
                        .remedy = nearest.empty() ? fmt::format("use {}", fmt::join(known, ", "))
                                                  : fmt::format("did you mean '{}'?", nearest)});
    }
    check_places(key, text, !key.ends_with(kSuffix));
    if (key == task) templates.teacher = text;
    if (key == task + kSuffix) templates.teacher_without_solution = text;
  }
  return templates;
}

std::string task_of(const RewardConfig& reward, const DataConfig& data) {
  if (tasks().contains(reward.kind)) return reward.kind;
  return tasks().contains(data.template_name) ? data.template_name : "math";
}

std::string student_template(const std::string& name_or_text) {
  if (name_or_text == "none") return "{problem}";
  if (const auto found = tasks().find(name_or_text); found != tasks().end())
    return found->second.student;
  if (has_place(name_or_text, "problem")) return name_or_text;
  throw InputError(
      fmt::format("'{}' is neither a template's name nor a text with {{problem}}", name_or_text),
      {.where = "data.template",
       .remedy = "use math, code, countdown or none, or write {problem}"});
}

std::string fill_template(std::string_view text,
                          const std::map<std::string, std::string, std::less<>>& places) {
  std::string filled;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t open = std::min(text.find('{', at), text.size());
    filled += text.substr(at, open - at);
    at = open;
    if (at == text.size()) break;
    const std::size_t close = text.find('}', at);
    const auto place = close == std::string_view::npos
                           ? places.end()
                           : places.find(text.substr(at + 1, close - at - 1));
    if (place == places.end()) {
      filled += text[at++];
    } else {
      filled += place->second;
      at = close + 1;
    }
  }
  return filled;
}

std::string without_verdict(const TaskTemplates& templates, std::string text) {
  for (const std::string& part : {templates.assessment, std::string("{feedback}")})
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part))
      text.erase(at, part.size());
  return text;
}

std::string feedback_text(const TaskTemplates& templates, const Verdict& verdict) {
  if (!templates.passes.empty() && verdict.total > 0) {
    return fill_template(templates.passes, {{"passed", std::to_string(verdict.passed)},
                                            {"total", std::to_string(verdict.total)}});
  }
  return verdict.correct() ? templates.correct : templates.incorrect;
}

std::string text_after_last(std::string_view text, std::string_view marker) {
  if (const std::size_t at = text.rfind(marker); at != std::string_view::npos)
    text.remove_prefix(at + marker.size());
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(kSpace) - first + 1));
}

}  // namespace antisd::inline context
