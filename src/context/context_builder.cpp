#include "context/context_builder.h"

#include <algorithm>

#include "context/solution.h"
#include "core/check.h"

namespace antisd::inline context {

ContextBuilder::ContextBuilder(const ContextConfig& config, const std::string& task,
                               std::uint64_t seed, const PromptRenderer& renderer)
    : config_(config),
      templates_(teacher_templates(task, config.templates)),
      picker_(seed, config.peer == "group" ? PeerMode::kGroup : PeerMode::kRollout),
      renderer_(renderer) {}

std::int64_t ContextBuilder::build(const PromptBatch& prompts, ResponseBatch& batch,
                                   std::int64_t positions,
                                   std::span<const std::string> told) const {
  std::int64_t cut = 0;
  ANTISD_CHECK(config_.command.empty() || told.size() == batch.size());
  ANTISD_CHECK_EQ(prompts.prompts.size(), batch.groups.size());
  for (std::size_t p = 0; p < batch.groups.size(); ++p) {
    ResponseGroup& group = batch.groups[p];
    const Problem& problem = *prompts.prompts[p].problem;
    std::vector<Solution> shown = solutions(prompts, batch, p, told);
    for (std::size_t i = 0; i < group.responses.size(); ++i) {
      Response& response = group.responses[i];
      if (response.verdict.failed()) continue;
      response.context = {
          .source = shown[i].source,
          .prompt_ids = renderer_.encode(teacher_messages(problem, shown[i], response.verdict))};
      cut_to_fit(problem, shown[i], positions, response);
      cut += shown[i].text.find(kCutMarker) != std::string::npos;
    }
  }
  return cut;
}

// Leaves the prompt too long where even a short piece of the solution does not fit.
void ContextBuilder::cut_to_fit(const Problem& problem, Solution& solution, std::int64_t positions,
                                Response& response) const {
  constexpr std::int64_t kLeast = 16, kSpare = 8;  // tokens of the solution; of the marker
  const auto over = [&] {
    return std::ssize(response.context.prompt_ids) + std::ssize(response.ids) - positions;
  };
  if (over() <= 0 || solution.text.empty()) return;
  const std::string whole = solution.text;
  std::int64_t budget = std::ssize(renderer_.tokenizer().encode(whole));
  while (over() > 0 && budget - over() - kSpare >= kLeast) {
    budget -= over() + kSpare;
    solution.text = shorten_solution(renderer_.tokenizer(), whole, budget);
    response.context.prompt_ids =
        renderer_.encode(teacher_messages(problem, solution, response.verdict));
  }
}

std::vector<Solution> ContextBuilder::solutions(const PromptBatch& prompts,
                                                const ResponseBatch& batch, std::size_t group,
                                                std::span<const std::string> told) const {
  const std::size_t size = batch.group_size();
  if (config_.control == "prompt-alone")
    return std::vector<Solution>(size, {ContextSource::kPrompt, ""});
  if (config_.control == "other-problem") {
    // What the next problem's responses are shown; of the same kind and length, but no help.
    std::vector<Solution> shown =
        own_solutions(prompts, batch, (group + 1) % batch.groups.size(), told);
    for (Solution& solution : shown)
      if (solution.source != ContextSource::kFeedback) solution.source = ContextSource::kOther;
    return shown;
  }
  if (config_.control == "wrong") {
    std::vector<Solution> shown;
    for (const auto& peer : peers(prompts, group, batch.groups[group], /*correct=*/false))
      shown.push_back(peer ? Solution{ContextSource::kWrong, *peer} : Solution());
    return shown;
  }
  return own_solutions(prompts, batch, group, told);
}

std::vector<std::optional<std::string>> ContextBuilder::peers(const PromptBatch& prompts,
                                                              std::size_t prompt,
                                                              const ResponseGroup& group,
                                                              bool correct) const {
  std::vector<std::string> texts;
  std::vector<bool> may_be_shown;
  for (const Response& response : group.responses) {
    const bool wanted = !response.verdict.failed() && response.verdict.correct() == correct;
    texts.push_back(wanted ? solution_of(response) : "");
    may_be_shown.push_back(!texts.back().empty());
  }
  std::vector<std::optional<std::string>> found(group.responses.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::optional<std::size_t> peer =
        picker_.pick(prompts.prompts[prompt].step, prompts.prompts[prompt].index, may_be_shown, i);
    if (peer) found[i] = texts[*peer];
  }
  return found;
}

std::vector<Solution> ContextBuilder::own_solutions(const PromptBatch& prompts,
                                                    const ResponseBatch& batch, std::size_t group,
                                                    std::span<const std::string> told) const {
  if (!config_.column.empty())
    return std::vector<Solution>(batch.group_size(), from_row(*prompts.prompts[group].problem));
  std::vector<Solution> shown;
  for (std::size_t i = 0; i < batch.group_size() && !config_.command.empty(); ++i) {
    const std::string text = text_after_last(told[group * batch.group_size() + i], "</think>");
    shown.push_back(text.empty() ? fallback(*prompts.prompts[group].problem)
                                 : Solution{ContextSource::kCommand,
                                            shorten_solution(renderer_.tokenizer(), text,
                                                             config_.max_solution_tokens)});
  }
  if (!config_.command.empty()) return shown;
  for (const auto& peer : peers(prompts, group, batch.groups[group], /*correct=*/true))
    shown.push_back(peer ? Solution{ContextSource::kPeer, *peer}
                         : fallback(*prompts.prompts[group].problem));
  return shown;
}

Solution ContextBuilder::fallback(const Problem& problem) const {
  if (config_.fallback == "feedback") return {};
  if (problem.solution) {
    const std::string text = text_after_last(*problem.solution, "</think>");
    if (!text.empty()) {
      return {ContextSource::kDataset,
              shorten_solution(renderer_.tokenizer(), text, config_.max_solution_tokens)};
    }
  }
  if (problem.answer.empty()) return {};
  return {ContextSource::kAnswer, fill_template(templates_.answer, {{"answer", problem.answer}})};
}

Solution ContextBuilder::from_row(const Problem& problem) const {
  if (config_.column.empty()) return fallback(problem);
  const std::string text = text_after_last(column_text(problem, config_.column), "</think>");
  if (text.empty()) return fallback(problem);
  return {ContextSource::kColumn,
          shorten_solution(renderer_.tokenizer(), text, config_.max_solution_tokens)};
}

std::string ContextBuilder::solution_of(const Response& response) const {
  return shorten_solution(renderer_.tokenizer(),
                          text_after_last(response.text, templates_.solution_follows),
                          config_.max_solution_tokens);
}

std::vector<ChatMessage> ContextBuilder::teacher_messages(const Problem& problem,
                                                          const Solution& solution,
                                                          const Verdict& verdict) const {
  std::vector<ChatMessage> messages = renderer_.student_messages(problem);
  if (solution.source == ContextSource::kPrompt) return messages;
  auto asked = std::find_if(messages.rbegin(), messages.rend(),
                            [](const ChatMessage& message) { return message.role == "user"; });
  if (asked == messages.rend()) asked = messages.rbegin();
  const bool alone = solution.source == ContextSource::kFeedback;
  std::string text = alone ? templates_.teacher_without_solution : templates_.teacher;
  if (config_.control == "no-verdict") text = without_verdict(templates_, std::move(text));
  // The paper's verdict is on the response that follows, although it stands below the solution.
  const bool on_solution = config_.control == "truthful-verdict" && !alone;
  const std::string feedback =
      on_solution ? templates_.correct : feedback_text(templates_, verdict);
  asked->content =
      fill_template(text, {{"prompt", asked->content},
                           {"problem", problem.problem.empty() ? asked->content : problem.problem},
                           {"solution", solution.text},
                           {"feedback", feedback}});
  return messages;
}

}  // namespace antisd::inline context
