#include "cli/weights/microscope.h"

#include <algorithm>

#include <fmt/format.h>

#include "algo/advantages.h"
#include "cli/rows.h"
#include "cli/weights/model_parts.h"
#include "core/error.h"
#include "inference/finite_scores.h"
#include "reward/grader.h"
#include "reward/grading_stage.h"
#include "text/text_stream.h"

namespace antisd::inline cli {
namespace {

// `inspect` only shows; warnings are for `train`.
void no_warning(const std::string&) {}

Response given_response(const std::vector<TokenId>& ids, const Tokenizer& tokenizer) {
  return {.ids = ids,
          .sampling_logp = std::vector<float>(ids.size()),
          .text = readable_text(tokenizer, ids)};
}

}  // namespace

struct Microscope::Seen {
  PromptBatch prompts;
  ResponseBatch batch;
};

Microscope::Microscope(const RunConfig& config, const Method& method, const ModelOptions& options,
                       std::optional<std::int64_t> samples)
    : config_(config),
      method_(method),
      options_(options),
      samples_(samples),
      renderer_(make_renderer(files_of(options), config.data, no_warning)),
      context_(config.context, task_of(config.reward, config.data),
               static_cast<std::uint64_t>(config.train.seed), renderer_) {}

const CausalLm& Microscope::model() {
  if (!model_) model_ = open_model(options_);
  return *model_;
}

LookRequest Microscope::read(Json row, const std::string& where, const std::string& stem,
                             std::int64_t number) const {
  LookRequest request{.where = where};
  if (row.contains("response_ids")) {
    request.response_ids = ids_of(row, "response_ids");
  } else if (row.contains("response")) {
    request.response_ids = tokenizer().encode(required_string(row, "response"));
  }
  if (row.contains("reward") && !row["reward"].is_null()) {
    const Json& reward = row["reward"];
    if (!reward.is_number())
      throw InputError("'reward' is not a number",
                       {.where = where, .remedy = "leave it out to have the response graded"});
    request.reward = reward.get<double>();
  }
  request.problem =
      ProblemParser(config_.data.map, /*require_answer=*/false, gets_whole_rows(config_.reward))
          .parse(row, where, stem, number);
  const bool needs_answer =
      uses_grader(config_.reward, "math") || uses_grader(config_.reward, "code");
  const bool has_answer = !request.problem.answer.empty() || !request.problem.tests.is_null();
  if (needs_answer && !has_answer && !(request.reward && samples_.value_or(0) == 0)) {
    throw InputError("the problem has no answer, so no response can be graded",
                     {.where = where,
                      .remedy = "give 'answer', or 'response' and its 'reward', which the teacher "
                                "is told"});
  }
  return request;
}

void Microscope::sample(Seen& seen, std::span<const LookRequest> requests) {
  const bool given = requests.front().response_ids.has_value();
  const std::int64_t count = samples_.value_or(given ? 0 : config_.rollout.group_size);
  seen.batch.groups.resize(requests.size());
  if (count > 0) {
    RolloutConfig rollout = config_.rollout;
    rollout.group_size = count;
    if (!sampler_) {
      sampler_.emplace(rollout, static_cast<std::uint64_t>(config_.train.seed),
                       find_stop_ids(files_of(options_), tokenizer(), no_warning), tokenizer());
    }
    seen.batch =
        sampler_->generate(model(), seen.prompts, [](std::size_t, const ResponseGroup&) {});
    sampler_->release();
  }
  if (!given) return;
  for (std::size_t p = 0; p < requests.size(); ++p) {
    std::vector<Response>& responses = seen.batch.groups[p].responses;
    responses.insert(responses.begin(), given_response(*requests[p].response_ids, tokenizer()));
  }
}

void Microscope::grade(Seen& seen, std::span<const LookRequest> requests) {
  if (!grader_) grader_ = make_grader(config_.reward);
  GradingStage stage(*grader_, {.workers = static_cast<int>(config_.reward.workers),
                                .truncated_reward = config_.reward.truncated});
  for (std::size_t p = 0; p < requests.size(); ++p) {
    const bool known = requests[p].reward && seen.batch.groups[p].responses.size() == 1;
    if (!known) stage.submit(p, requests[p].problem, seen.batch.groups[p].responses);
  }
  stage.finish(seen.batch);
  for (std::size_t p = 0; p < requests.size(); ++p) {
    if (!requests[p].reward || !requests[p].response_ids) continue;
    Verdict& verdict = seen.batch.groups[p].responses.front().verdict;
    verdict = {.reward = requests[p].reward, .reason = "given"};
    if (config_.reward.correct_at != 1)
      verdict.right = *verdict.reward >= config_.reward.correct_at;
  }
}

// Checks what score() would reject and names the prompt.
void Microscope::check_lengths(const Inspection& inspection) {
  const std::int64_t positions = model().shape().max_positions;
  const auto check = [&](const char* who, const std::vector<TokenId>& prompt_ids) {
    const std::int64_t tokens = std::ssize(prompt_ids) + std::ssize(inspection.response.ids);
    if (tokens > positions) {
      throw InputError(
          fmt::format("the {}'s prompt and response have {} tokens; the model has {} positions",
                      who, tokens, positions),
          {.remedy = "give a shorter response, or lower rollout.max_sequence_tokens or "
                     "context.max_solution_tokens"});
    }
    check_request(model(), {prompt_ids, inspection.response.ids});
  };
  if (inspection.response.ids.empty()) return;
  check("student", inspection.prompt_ids);
  check("teacher", inspection.response.context.prompt_ids);
}

std::vector<Inspection> Microscope::inspections_of(Seen& seen,
                                                   std::span<const LookRequest> requests,
                                                   const OnBad& on_bad) {
  context_.build(seen.prompts, seen.batch);
  const std::size_t group_size = seen.batch.group_size();
  if (group_size > 1) set_advantages(seen.batch);
  std::vector<Inspection> inspections;
  for (std::size_t r = 0; r < seen.batch.size(); ++r) {
    const LookRequest& request = requests[r / group_size];
    if (request.response_ids && r % group_size != 0) continue;
    const Response& response = seen.batch[r];
    if (response.verdict.failed()) {
      ++ungraded_;
      continue;
    }
    Inspection inspection;
    inspection.id = request.problem.id;
    inspection.sample = static_cast<std::int64_t>(r % group_size);
    inspection.prompt_ids = seen.prompts.prompts[r / group_size].ids;
    inspection.response = response;
    inspection.response.lambda = method_.sign == 0 ? 0 : method_.lambda_max;
    inspection.source = context_source_name(response.context.source);
    try {
      check_lengths(inspection);
      inspections.push_back(std::move(inspection));
    } catch (const InputError& error) {
      on_bad(error, request.where);
    }
  }
  return inspections;
}

void Microscope::score_both(std::vector<Inspection>& inspections) {
  std::vector<ScoreRequest> requests;  // student, teacher, student, ...
  for (const Inspection& inspection : inspections) {
    if (inspection.response.ids.empty()) continue;
    requests.push_back({inspection.prompt_ids, inspection.response.ids});
    requests.push_back({inspection.response.context.prompt_ids, inspection.response.ids});
  }
  std::vector<TokenScores> scores;
  if (!requests.empty()) {
    scores = score(model(), requests,
                   {.temperature = config_.rollout.temperature,
                    .max_batch_tokens = config_.train.micro_batch_tokens,
                    .pack = {}});
    check_finite(model(), scores, [&](std::size_t i) {
      std::size_t scored = i / 2;  // index among those with tokens
      for (const Inspection& inspection : inspections) {
        if (!inspection.response.ids.empty() && scored-- == 0)
          return fmt::format("problem '{}', sample {}, under the {}'s prompt", inspection.id,
                             inspection.sample, i % 2 == 0 ? "student" : "teacher");
      }
      return std::string();
    });
  }
  std::size_t next = 0;
  for (Inspection& inspection : inspections) {
    inspection.response.student = inspection.response.teacher = {};
    if (!inspection.response.ids.empty()) {
      inspection.response.student = std::move(scores[next++]);
      inspection.response.teacher = std::move(scores[next++]);
    }
    describe(inspection, tokenizer());
    weigh(inspection, method_);
  }
}

std::vector<Inspection> Microscope::look(std::vector<LookRequest> requests, const OnBad& on_bad) {
  Seen seen;
  std::vector<LookRequest> good;
  for (LookRequest& request : requests) {
    std::vector<TokenId> ids = renderer_.encode(request.problem);
    const std::int64_t positions = model().shape().max_positions,
                       longest = std::min(positions, config_.rollout.max_sequence_tokens);
    const std::uint32_t index = next_prompt_++;
    if (std::ssize(ids) >= longest) {
      on_bad(InputError(fmt::format("the prompt has {} tokens, which leaves no room for a response",
                                    ids.size()),
                        {.remedy = fmt::format("the model has {} positions, and "
                                               "rollout.max_sequence_tokens is {}",
                                               positions, config_.rollout.max_sequence_tokens)}),
             request.where);
      continue;
    }
    seen.prompts.prompts.push_back(
        {.id = request.problem.id, .index = index, .problem = nullptr, .ids = std::move(ids)});
    good.push_back(std::move(request));
  }
  if (good.empty()) return {};
  for (std::size_t p = 0; p < good.size(); ++p)
    seen.prompts.prompts[p].problem = &good[p].problem;
  sample(seen, good);
  grade(seen, good);
  std::vector<Inspection> inspections = inspections_of(seen, good, on_bad);
  score_both(inspections);
  return inspections;
}

Inspection Microscope::look(Inspection inspection) {
  check_lengths(inspection);
  std::vector<Inspection> one(1, std::move(inspection));
  score_both(one);
  return std::move(one.front());
}

}  // namespace antisd::inline cli
