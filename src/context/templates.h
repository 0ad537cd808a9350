// The words around a problem: what the student is asked, and what the teacher is shown.
//
// A template is a text with placeholders: {problem} is the problem's own text, {prompt} the
// student's prompt, {solution} and {feedback} the privileged context. Other braces stay as they
// are.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "algo/response.h"
#include "config/run_config.h"

namespace antisd::inline context {

struct TaskTemplates {
  std::string student;                   // {problem}
  std::string teacher;                   // {prompt} or {problem}, {solution}, {feedback}
  std::string teacher_without_solution;  // {prompt} or {problem}, {feedback}
  std::string answer;                    // {answer}: used as the solution when there is none
  std::string correct, incorrect;        // {feedback}
  std::string passes;  // {feedback} where tests were counted: {passed}, {total}; may be empty
  // A rollout's solution is the text after the last of these: the end of thinking, or of the failed
  // tries.
  std::string solution_follows;
  std::string assessment;  // the part of `teacher` that tells the verdict, with {feedback}
};

// "math", "code" or "countdown". Math and code are the paper's.
const TaskTemplates& task_templates(std::string_view task);

// The task's templates, some replaced by the configuration's. InputError for a key that belongs to
// no task, or a text that lacks a required placeholder.
TaskTemplates teacher_templates(const std::string& task, const StringMap& replacements);

// The task of a run: given by the reward, or by the student's template if the reward is a user's
// program.
std::string task_of(const RewardConfig& reward, const DataConfig& data);

// The student's template: data.template is a task's name, "none", or a text with {problem}.
std::string student_template(const std::string& name_or_text);

// Replaces every {name} of `places` in one pass: inserted text is not searched again.
std::string fill_template(std::string_view text,
                          const std::map<std::string, std::string, std::less<>>& places);

// The text without the verdict: without `assessment` where it holds it, else without {feedback}.
std::string without_verdict(const TaskTemplates& templates, std::string text);

// The verdict on a response in words, e.g. "Your code passes 7 of 12 test cases."
std::string feedback_text(const TaskTemplates& templates, const Verdict& verdict);

// The text after the last `marker`, trimmed; the whole text if the marker does not occur.
std::string text_after_last(std::string_view text, std::string_view marker);

}  // namespace antisd::inline context
