#include "reward/context_command.h"

#include "core/error.h"
#include "core/utf8.h"
#include "io/process/supervised_command.h"
#include "reward/line_process.h"

namespace antisd::inline reward {
namespace {

constexpr int kSkippedLines = 1000;  // at most, before an answer

std::string beginning_of(const std::string& line) {
  return replace_invalid_utf8(line.substr(0, 100));  // the cut may be inside a character
}

// The answer to request `id`; nothing for a line that is to be skipped.
std::optional<ContextAnswer> read_context_line(const std::string& line, std::int64_t id) {
  Json answer;
  try {
    answer = parse_json(line, "context.command");
  } catch (const InputError&) {
    return std::nullopt;  // a log line
  }
  if (answer.is_object() && answer.contains("id") && answer["id"] != id) return std::nullopt;
  if (!answer.is_object() || !answer.contains("context"))
    return ContextAnswer{.reason = "context.command wrote something other than an answer: " +
                                   beginning_of(line)};
  if (answer["context"].is_null()) return ContextAnswer();
  if (!answer["context"].is_string())
    return ContextAnswer{.reason = "context.command gave a context that is not text: " +
                                   beginning_of(line)};
  return ContextAnswer{.text = answer["context"].get<std::string>()};
}

// After a failure the process is unusable: it may answer late.
ContextAnswer ask_process(LineProcess& process, const Json& request, double timeout_s) {
  const auto deadline = LineProcess::after(timeout_s);
  ContextAnswer failed;
  std::optional<std::string> line =
      process.ask(to_json_line(request) + "\n", deadline, failed.reason);
  for (int skipped = 0; line && skipped < kSkippedLines; ++skipped) {
    if (const auto answer = read_context_line(*line, request["id"])) return *answer;
    line = process.read_line(deadline, failed.reason);
  }
  if (line) failed.reason = "context.command writes lines without an answer";
  return failed;
}

}  // namespace

Json context_request(const Problem& problem, const Response& response) {
  const Verdict& verdict = response.verdict;
  Json request = {{"problem", prompt_text(problem)},
                  {"answer", problem.answer},
                  {"response", response.text},
                  {"reward", verdict.reward ? Json(*verdict.reward) : Json(nullptr)},
                  {"correct", verdict.correct()},
                  {"reason", verdict.reason},
                  {"row_id", problem.id}};
  if (verdict.total > 0) request.update({{"passed", verdict.passed}, {"total", verdict.total}});
  if (problem.row.is_object()) {
    for (const auto& [column, value] : problem.row.items())
      request.emplace(column, Json(value));  // ours win
  }
  return request;
}

ContextCommand::ContextCommand(ContextCommandOptions options)
    : options_(std::move(options)),
      threads_((options_.workers > 0 ? options_.workers : available_threads()) - 1),
      processes_(threads_.size() + 1) {
  start_supervision();
}

ContextCommand::~ContextCommand() = default;

ContextAnswer ContextCommand::ask_one(Json request, std::string* errors) {
  request["id"] = next_id_++;
  std::unique_ptr<LineProcess> process = processes_.acquire();
  ContextAnswer answer;
  try {
    if (!process) process = std::make_unique<LineProcess>(options_.command, "context.command");
    answer = ask_process(*process, request, options_.timeout_s);
    if (!answer.reason.empty() && errors != nullptr) *errors = process->quoted_errors();
  } catch (const RunError& error) {
    answer.reason = "context.command cannot be started: " + error.message();
  } catch (...) {
    processes_.give_back(nullptr);
    throw;
  }
  if (!answer.reason.empty()) process.reset();
  processes_.give_back(std::move(process));
  return answer;
}

std::vector<ContextAnswer> ContextCommand::ask(std::span<const Json> requests) {
  std::vector<ContextAnswer> answers(requests.size());
  threads_.parallel_for(requests.size(), [&](std::size_t i) { answers[i] = ask_one(requests[i]); });
  return answers;
}

void ContextCommand::probe(const Json& request) {
  std::string errors;
  const ContextAnswer answer = ask_one(request, &errors);
  if (answer.reason.empty()) return;
  throw RunError(
      fmt::format("the program `{}` gives no context: {}{}", options_.command, answer.reason,
                  errors),
      {.where = "context.command",
       .remedy = fmt::format(
           "try it by hand: it reads a line like {{\"id\": 1, \"problem\": \"..\", \"response\": "
           "\"..\", \"correct\": false}} and within context.timeout_s = {} seconds writes one like "
           "{{\"context\": \"..\"}} and flushes it",
           options_.timeout_s)});
}

}  // namespace antisd::inline reward
