// Who teaches and how: the keys of [method.teacher] and [method.opd], and checks across these and
// what the teacher is shown in place of a peer's solution.
#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "config/run_config.h"
#include "core/error.h"

namespace antisd::inline config {
namespace {

constexpr std::array<std::string_view, 2> kWithoutTeacher = {"grpo", "antisd-no-teacher"};

// These say which solution is shown, as context.column and context.command do.
constexpr std::array<std::string_view, 3> kOwnSolutions = {"wrong", "truthful-verdict",
                                                           "prompt-alone"};

}  // namespace

void RunConfig::describe_teacher() {
  OptionSet& o = options_;
  o.add("method.teacher.path", method.teacher.path,
        "another model as the teacher, as model.path names it; it must have the same tokenizer, "
        "and opd shows it the student's prompt alone (context.control). Empty: the model itself")
      .common_in({"train", "sweep"});
  o.add("method.opd.divergence", method.opd.divergence,
        "what opd descends: sampled: A = lambda u on the sampled tokens; or the divergence of the "
        "two distributions at each token: forward-kl is KL(teacher, student), reverse-kl is "
        "KL(student, teacher), jsd is method.opd.alpha's mixture of both")
      .one_of({"sampled", "forward-kl", "reverse-kl", "jsd"});
  o.add("method.opd.top_k", method.opd.top_k,
        "of a divergence: number of the teacher's most likely tokens that are compared one by one, "
        "the rest is one entry; 0: the whole vocabulary")
      .at_least(0);
  o.add("method.opd.alpha", method.opd.alpha,
        "of jsd: weight of the teacher in the mixture of teacher and student")
      .between(0, 1);
}

void RunConfig::imply_teacher() {
  if (method.teacher.path.empty() || method.name != "opd") return;
  if (!context.column.empty() || !context.command.empty()) return;
  options_.imply("method.teacher.path", "context.control=prompt-alone");
}

void RunConfig::validate_teacher() const {
  const auto is_in = [](const auto& names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  if (!method.teacher.path.empty() && is_in(kWithoutTeacher, method.name)) {
    throw InputError(
        fmt::format("method.name = \"{}\" has no teacher", method.name),
        {.where = "method.teacher.path", .remedy = "leave it out, or use method.name = \"opd\""});
  }
  if (!method.teacher.path.empty() && method.name == "sdpo" && method.sdpo.teacher_ema > 0) {
    throw InputError(
        fmt::format("method.sdpo.teacher_ema = {} lets the teacher follow the student, but "
                    "method.teacher.path is another model",
                    method.sdpo.teacher_ema),
        {.remedy = "leave one of them out"});
  }
  if (!context.column.empty() && !context.command.empty()) {
    throw InputError("both context.column and context.command say what the teacher is shown",
                     {.remedy = "leave one of them out; the program is given all columns"});
  }
  if (!context.column.empty() && is_in(kOwnSolutions, context.control)) {
    throw InputError(fmt::format("context.control = \"{}\" does not show the column '{}'",
                                 context.control, context.column),
                     {.where = "context.column", .remedy = "leave one of them out"});
  }
  if (!context.command.empty() && is_in(kOwnSolutions, context.control)) {
    throw InputError(fmt::format("context.control = \"{}\" does not show what `{}` says",
                                 context.control, context.command),
                     {.where = "context.command", .remedy = "leave one of them out"});
  }
  if (method.opd.alpha <= 0 || method.opd.alpha >= 1) {
    throw InputError(fmt::format("method.opd.alpha = {} makes the loss 0", method.opd.alpha),
                     {.remedy = "choose a value between 0 and 1, or forward-kl or reverse-kl as "
                                "method.opd.divergence"});
  }
}

}  // namespace antisd::inline config
