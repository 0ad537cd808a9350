// The words around a problem: what the student is asked, and what the teacher is shown.
//
// A template is a text with places in braces: {problem} is the problem's own text, {prompt} what
// the student is asked, {solution} and {feedback} the privileged context. Other braces stay as they
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
  std::string answer;                    // {answer}: stands for a solution where there is none
  std::string correct, incorrect;        // {feedback}
  std::string passes;  // {feedback} where tests were counted: {passed}, {total}; may be empty
  // A rollout's solution is what follows the last of these: the end of thinking, or of the tries
  // before the one that worked.
  std::string solution_follows;
};

// "math", "code" or "countdown". Math and code are the paper's.
const TaskTemplates& task_templates(std::string_view task);

// The task's templates with the configuration's in their place. InputError for a key that
// belongs to no task, or a text that lacks a place it needs.
TaskTemplates teacher_templates(const std::string& task, const StringMap& replacements);

// The task of a run: the reward's, or for a reward of the user's own that of the student's
// template.
std::string task_of(const RewardConfig& reward, const DataConfig& data);

// The student's template: data.template is a task's name, "none", or a text with {problem}.
std::string student_template(const std::string& name_or_text);

// Every {name} of `places` replaced, in one pass, so that what is put in is not looked at again.
std::string fill_template(std::string_view text,
                          const std::map<std::string, std::string, std::less<>>& places);

// The assessment of a response, "Your code passes 7 of 12 test cases."
std::string feedback_text(const TaskTemplates& templates, const Verdict& verdict);

// What follows the last `marker`, without white space around it; the whole text where there is
// none.
std::string text_after_last(std::string_view text, std::string_view marker);

}  // namespace antisd::inline context
