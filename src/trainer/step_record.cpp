#include "trainer/step_record.h"

#include <cmath>
#include <limits>
#include <map>

#include "algo/gate_signal.h"
#include "algo/reward_summary.h"
#include "run/metrics/statistics.h"

namespace antisd::inline trainer {
namespace {

constexpr std::size_t kSampleBytes = 2000;  // of a response in log.txt
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

struct Lengths {
  std::vector<double> responses, prompts;  // one per response
};

Lengths lengths_of(const StepRecord& record) {
  Lengths lengths;
  for (std::size_t r = 0; r < record.batch.size(); ++r) {
    const Prompt& prompt = record.prompts.prompts[r / record.batch.group_size()];
    lengths.responses.push_back(static_cast<double>(record.batch[r].ids.size()));
    lengths.prompts.push_back(static_cast<double>(prompt.ids.size()));
  }
  return lengths;
}

double sum_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values)
    sum += value;
  return sum;
}

void set_moments(MetricSet& metrics, const std::string& name, const Moments& moments) {
  metrics.set(name + "/mean", moments.mean());
  metrics.set(name + "/max", moments.count > 0 ? moments.max : kNothing);
  metrics.set(name + "/min", moments.count > 0 ? moments.min : kNothing);
}

void set_rewards(MetricSet& metrics, const StepRecord& record) {
  const RewardSummary rewards = summarise_rewards(record.batch);
  // verl's score is the grader's, its reward what a KL penalty leaves of it. Here that penalty is a
  // term of the loss, and both are the same.
  for (const char* name : {"critic/score", "critic/rewards"}) {
    metrics.set(fmt::format("{}/mean", name), rewards.mean);
    metrics.set(fmt::format("{}/max", name), rewards.max);
    metrics.set(fmt::format("{}/min", name), rewards.min);
  }
  metrics.set("reward/non_truncated", rewards.non_truncated);
  metrics.set("reward/grader_failed", static_cast<double>(rewards.grader_failed));
  metrics.set("group/all_right_fraction", rewards.all_right_fraction);
  metrics.set("group/all_wrong_fraction", rewards.all_wrong_fraction);
  Moments shaped;
  for (std::size_t r = 0; r < record.batch.size(); ++r)
    if (record.batch[r].shaped_reward) shaped.add(*record.batch[r].shaped_reward);
  if (shaped.count > 0) metrics.set("reward/shaped", shaped.mean());
}

// What the rewards are made of, where they are sums, and the share of correct responses, where the
// rewards do not say it.
void set_reward_parts(MetricSet& metrics, const StepRecord& record) {
  std::map<std::string, Moments> parts;
  Moments correct;
  bool is_decided = false;
  for (std::size_t r = 0; r < record.batch.size(); ++r) {
    const Verdict& verdict = record.batch[r].verdict;
    if (verdict.failed()) continue;
    correct.add(verdict.correct() ? 1 : 0);
    is_decided = is_decided || verdict.right.has_value();
    for (const auto& [name, reward] : verdict.parts)
      parts[name].add(reward);
  }
  if (is_decided) metrics.set("reward/correct", correct.mean());
  for (const auto& [name, moments] : parts)
    metrics.set("reward/parts/" + name, moments.mean());
}

void set_lengths(MetricSet& metrics, const StepRecord& record, const Lengths& lengths) {
  const auto responses = static_cast<double>(record.batch.size());
  double truncated = 0, longest_prompts = 0;
  std::vector<double> not_empty;
  for (std::size_t r = 0; r < record.batch.size(); ++r) {
    truncated += record.batch[r].truncated();
    longest_prompts += lengths.prompts[r] == static_cast<double>(record.max_prompt_tokens);
    if (lengths.responses[r] > 0) not_empty.push_back(lengths.responses[r]);
  }
  const auto tokens = static_cast<double>(not_empty.size());
  metrics.set("response_length", summarise(lengths.responses));
  metrics.set("response_length/clip_ratio", truncated / responses);
  metrics.set("response_length_non_aborted", summarise(not_empty));
  metrics.set("response_length_non_aborted/clip_ratio", truncated / tokens);
  metrics.set("response/aborted_ratio", 1 - tokens / responses);
  metrics.set("prompt_length", summarise(lengths.prompts));
  metrics.set("prompt_length/clip_ratio", longest_prompts / responses);
}

// A of every token, which the method's term is added to: for GRPO the same as the advantages.
void set_returns(MetricSet& metrics, const StepRecord& record) {
  Moments returns;
  for (std::size_t r = 0; r < record.batch.size(); ++r) {
    const Response& response = record.batch[r];
    if (!response.group_advantage) continue;
    for (std::size_t i = 0; i < response.ids.size(); ++i)
      returns.add(*response.group_advantage);
  }
  set_moments(metrics, "critic/returns", returns);
}

void set_refill(MetricSet& metrics, const RefillCounts& refill) {
  if (refill.rounds == 0) return;
  metrics.set("rollout/refill_rounds", static_cast<double>(refill.rounds));
  metrics.set("rollout/refilled_groups", static_cast<double>(refill.groups));
  metrics.set("rollout/discarded_tokens", static_cast<double>(refill.discarded_tokens));
}

void set_partial(MetricSet& metrics, const std::optional<PartialCounts>& partial) {
  if (!partial) return;
  metrics.set("rollout/carried_groups", static_cast<double>(partial->groups));
  metrics.set("rollout/carried_responses", static_cast<double>(partial->responses));
  metrics.set("rollout/carried_tokens", static_cast<double>(partial->tokens));
  metrics.set("rollout/age/mean", partial->age.mean());
  metrics.set("rollout/age/max", partial->age.count > 0 ? partial->age.max : kNothing);
  metrics.set("rollout/old_tokens_fraction", static_cast<double>(partial->old_tokens) /
                                                 static_cast<double>(partial->trained_tokens));
}

// [[age, tokens], ...]: how many steps ago the policy was that sampled them.
Json policies_json(const StepRecord& record, const Response& response) {
  Json policies = Json::array();
  for (const PolicySpan& span : response.policies)
    policies.push_back({record.random_step - span.step, span.tokens});
  return policies;
}

void set_update(MetricSet& metrics, const StepRecord& record) {
  const NamedSums& sums = record.update.sums;
  const LossConfig& loss = record.shaping.method.loss;
  set_moments(metrics, "critic/advantages", sums.at("advantage"));
  double policy_loss = sums.mean("loss");
  for (const LossTerm& term : loss_terms()) {
    if (loss.*term.weight > 0) policy_loss -= loss.*term.weight * sums.mean(term.name);
  }
  metrics.set("actor/pg_loss", policy_loss);
  metrics.set("actor/entropy", sums.mean("entropy"));
  metrics.set("actor/pg_clipfrac", sums.mean("clipped"));
  metrics.set("actor/pg_clipfrac_lower", sums.mean("dual_clipped"));
  metrics.set("actor/ppo_kl", -sums.mean("log_ratio"));
  for (const LossTerm& term : loss_terms()) {
    if (loss.*term.weight > 0)
      metrics.set(fmt::format("actor/{}", term.name), sums.mean(term.name));
  }
  if (const Moments& ratio = sums.at("rollout_ratio"); ratio.count > 0) {
    set_moments(metrics, "actor/rollout_ratio", ratio);
    metrics.set("actor/rollout_cut_fraction", sums.mean("rollout_cut"));
  }
  metrics.set("actor/grad_norm", record.update.updates > 0 ? record.update.grad_norm : kNothing);
  metrics.set("actor/lr", record.lr);
  const Moments& gap = sums.at("probability_gap");
  metrics.set("training/rollout_probs_diff_mean", gap.mean());
  metrics.set("training/rollout_probs_diff_max", gap.count > 0 ? gap.max : kNothing);
  for (const auto& [name, sum] : sums.values()) {
    if (name.find('/') != std::string::npos) metrics.set(name, sum.mean());
  }
}

void set_term(MetricSet& metrics, const StepRecord& record) {
  const Method& method = record.shaping.method;
  if (method.sign == 0) return;
  double lambda = 0;
  std::int64_t graded = 0;
  for (std::size_t r = 0; r < record.batch.size(); ++r) {
    if (record.batch[r].verdict.failed()) continue;
    lambda += record.batch[r].lambda;
    ++graded;
  }
  metrics.set("antisd/lambda", lambda / static_cast<double>(graded));
  metrics.set("antisd/gate", record.gate.open() ? 1 : 0);
  metrics.set("antisd/gate_signal", record.gate.statistic);
  metrics.set("antisd/h_warm", record.gate.h_warm);
  // If H_warm is too small, the gate has no threshold.
  metrics.set("antisd/tau", record.gate.too_small ? kNothing : record.gate.tau);
  metrics.set("antisd/gate_too_small", record.gate.too_small ? 1 : 0);
  const NamedSums& sums = record.update.sums;
  const Moments& u = sums.at("u");
  set_moments(metrics, "antisd/u", u);
  metrics.set("antisd/u/std", u.deviation());
  metrics.set("antisd/u/frac_neg", u.negative_fraction());
  metrics.set("antisd/phi/mean", sums.mean("phi"));
  metrics.set("antisd/term_ratio", sums.at("term").sum / sums.at("group_advantage").sum);
}

void set_teacher(MetricSet& metrics, const StepRecord& record) {
  if (!record.shaping.method.needs_teacher()) return;
  TokenScores all;  // one response with the tokens of all
  for (std::size_t r = 0; r < record.batch.size(); ++r) {
    const TokenScores& scores = record.batch[r].teacher;
    all.logp.insert(all.logp.end(), scores.logp.begin(), scores.logp.end());
    all.entropy.insert(all.entropy.end(), scores.entropy.begin(), scores.entropy.end());
  }
  if (record.failed_contexts)
    metrics.set("context/command_failed", static_cast<double>(*record.failed_contexts));
  const TeacherSummary teacher = summarise_teacher({&all, 1});
  metrics.set("teacher/entropy_mean", teacher.entropy_mean);
  metrics.set("teacher/entropy_median", teacher.entropy_median);
  metrics.set("teacher/ppl", teacher.perplexity);

  std::array<double, kContextSources> counts = {};
  for (std::size_t r = 0; r < record.batch.size(); ++r)
    ++counts[static_cast<std::size_t>(record.batch[r].context.source)];
  const double shown = sum_of(counts) - counts[static_cast<std::size_t>(ContextSource::kNone)];
  for (const ContextSource source :
       {ContextSource::kPeer, ContextSource::kDataset, ContextSource::kAnswer,
        ContextSource::kFeedback, ContextSource::kOther, ContextSource::kWrong,
        ContextSource::kPrompt, ContextSource::kColumn, ContextSource::kCommand}) {
    const bool control = source > ContextSource::kNone;
    if (control && counts[static_cast<std::size_t>(source)] == 0) continue;
    metrics.set(fmt::format("context/{}_fraction", context_source_name(source)),
                shown > 0 ? counts[static_cast<std::size_t>(source)] / shown : 0);
  }
}

void set_times(MetricSet& metrics, const StepRecord& record, const Lengths& lengths) {
  const StepTimes& times = record.times.most;
  metrics.set("timing_s/gen", times.generate);
  metrics.set("timing_s/reward", times.reward);
  metrics.set("timing_s/score", times.score);
  metrics.set("timing_s/adv", times.advantage);
  metrics.set("timing_s/update_actor", times.update);
  metrics.set("timing_s/save", times.save);
  metrics.set("timing_s/step", times.step);
  if (record.times.ranks > 1) {
    const StepTimes& mean = record.times.mean;
    metrics.set("timing_s/mean/gen", mean.generate);
    metrics.set("timing_s/mean/reward", mean.reward);
    metrics.set("timing_s/mean/score", mean.score);
    metrics.set("timing_s/mean/update_actor", mean.update);
    metrics.set("timing_s/mean/ranks", mean.ranks);
    metrics.set("timing_s/exchange", record.times.exchange);
  }
  const double sampled = sum_of(lengths.responses), tokens = sampled + sum_of(lengths.prompts);
  const double generated =
      record.partial ? static_cast<double>(record.partial->new_tokens) : sampled;
  metrics.set("timing_per_token_ms/gen", 1000 * times.generate / generated);
  metrics.set("timing_per_token_ms/score", 1000 * times.score / tokens);
  metrics.set("timing_per_token_ms/adv", 1000 * times.advantage / tokens);
  metrics.set("timing_per_token_ms/update_actor", 1000 * times.update / tokens);
  metrics.set("perf/total_num_tokens", tokens);
  metrics.set("perf/time_per_step", times.step);
  metrics.set("perf/throughput", tokens / times.step / record.times.ranks);
  const PhaseMemory& memory = record.memory;
  if (memory.generate) metrics.set("perf/max_memory_allocated_gb/gen", *memory.generate);
  if (memory.score) metrics.set("perf/max_memory_allocated_gb/score", *memory.score);
  if (memory.update) metrics.set("perf/max_memory_allocated_gb/update_actor", *memory.update);
}

Json numbers_or_null(const auto& values) {
  return values.empty() ? Json(nullptr) : Json(values);
}

}  // namespace

MetricSet step_metrics(const StepRecord& record) {
  MetricSet metrics;
  const Lengths lengths = lengths_of(record);
  set_rewards(metrics, record);
  set_reward_parts(metrics, record);
  set_lengths(metrics, record, lengths);
  set_returns(metrics, record);
  set_refill(metrics, record.refill);
  set_partial(metrics, record.partial);
  set_update(metrics, record);
  set_term(metrics, record);
  set_teacher(metrics, record);
  set_times(metrics, record, lengths);
  return metrics;
}

Json rollout_row(const StepRecord& record, std::size_t number) {
  const Response& response = record.batch[number];
  const std::size_t group_size = record.batch.group_size();
  const Prompt& prompt = record.prompts.prompts[number / group_size];
  const auto or_null = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  Json row = {{"step", record.step},
              {"prompt_id", prompt.id},
              {"sample", number % group_size},
              {"prompt_ids", prompt.ids},
              {"response_ids", response.ids},
              {"text", response.text},
              {"reward", or_null(response.verdict.reward)},
              {"reason", response.verdict.reason},
              {"truncated", response.truncated()},
              {"group_advantage", or_null(response.group_advantage)},
              {"context_source", context_source_name(response.context.source)},
              {"teacher_prompt_ids", numbers_or_null(response.context.prompt_ids)},
              {"lambda", response.lambda},
              {"sampling_logp", response.sampling_logp},
              {"student_logp", numbers_or_null(response.student.logp)},
              {"teacher_logp", numbers_or_null(response.teacher.logp)},
              {"student_entropy", numbers_or_null(response.student.entropy)},
              {"teacher_entropy", numbers_or_null(response.teacher.entropy)},
              {"token_advantage", numbers_or_null(response.token_advantage)}};
  if (response.shaped_reward) row["shaped_reward"] = *response.shaped_reward;
  if (response.verdict.right) row["correct"] = *response.verdict.right;
  if (!response.verdict.parts.empty()) row["reward_parts"] = response.verdict.parts;
  if (!response.rollout_weight.empty()) row["rollout_weight"] = response.rollout_weight;
  if (!response.policies.empty()) row["policies"] = policies_json(record, response);
  return row;
}

std::string sample_line(const StepRecord& record) {
  const Response& sample = record.batch[0];
  return fmt::format("step {} problem {} reward {}{}: {}", record.step,
                     record.prompts.prompts[0].id,
                     sample.verdict.reward ? fmt::format("{}", *sample.verdict.reward) : "none",
                     sample.truncated() ? ", truncated" : "",
                     to_json_line(Json(sample.text.substr(0, kSampleBytes))));  // one line
}

}  // namespace antisd::inline trainer
