#include "algo/shaping.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "algo/clipped_loss.h"
#include "algo/gate_signal.h"
#include "algo/phi.h"
#include "core/check.h"
#include "core/error.h"

namespace antisd::inline algo {
namespace {

// (x - mean) / (std + 1e-6) within one response; std has Bessel's correction; 0 for a single token.
void standardise(std::vector<double>& values) {
  Moments moments;
  for (const double value : values)
    moments.add(value);
  const double mean = moments.mean();
  double squares = 0;
  for (const double value : values)
    squares += (value - mean) * (value - mean);
  const double deviation =
      values.size() < 2 ? 0 : std::sqrt(squares / static_cast<double>(values.size() - 1));
  for (double& value : values)
    value = (value - mean) / (deviation + 1e-6);
}

double bounded(double value, double limit) {  // limit 0: no limit
  return limit > 0 ? std::clamp(value, -limit, limit) : value;
}

std::vector<double> log_ratios(const Method& method, const std::vector<float>& teacher_logp,
                               std::span<const float> student_logp) {
  std::vector<double> u(student_logp.size());
  if (!method.teacher) {
    std::transform(student_logp.begin(), student_logp.end(), u.begin(),
                   [](double s) { return -s; });
    return u;
  }
  ANTISD_CHECK_EQ(teacher_logp.size(), student_logp.size());
  for (std::size_t i = 0; i < u.size(); ++i)
    u[i] = static_cast<double>(teacher_logp[i]) - student_logp[i];
  return u;
}

// What lambda multiplies: -phi(u) for AntiSD, +u for SD, after the released code's rules if set.
std::vector<double> terms(const Method& method, const std::vector<double>& phi_of_u) {
  std::vector<double> term(phi_of_u.size());
  for (std::size_t i = 0; i < term.size(); ++i)
    term[i] = method.sign * phi_of_u[i];
  if (method.signal.standardise && !term.empty()) standardise(term);
  for (double& value : term)
    value = bounded(value, method.signal.clamp_term);
  return term;
}

double compose(const Method& method, double group_advantage, double lambda, double term) {
  if (method.composition == Composition::kMultiplicative)
    return group_advantage * (1 + lambda * term);
  return group_advantage + lambda * term;
}

}  // namespace

double response_lambda(const Method& method, const GateReading& gate, double teacher_perplexity) {
  if (method.sign == 0 || !gate.open()) return 0;
  if (method.lambda_rule == LambdaRule::kConstant) return method.lambda_max;
  const double limit = method.gate.max_perplexity;
  if (std::isnan(teacher_perplexity) || (limit > 0 && teacher_perplexity > limit)) return 0;
  const double excess = std::log(std::clamp(teacher_perplexity / gate.tau, 0.5, 3.0));
  return std::clamp(method.lambda_slope * excess, 0.0, method.lambda_max);
}

Shaping make_shaping(const Method& method, const GateReading& gate, const Moments& warmup_u,
                     ResponseBatch& batch) {
  for (std::size_t r = 0; r < batch.size(); ++r) {
    const double ppl =
        method.lambda_rule == LambdaRule::kPerplexity ? perplexity(batch[r].teacher.logp) : 0;
    batch[r].lambda = response_lambda(method, gate, ppl);
  }
  Shaping shaping{.method = method};
  if (method.signal.outlier_sigmas > 0 && warmup_u.count > 0)
    shaping.outlier_limit = method.signal.outlier_sigmas * warmup_u.deviation();
  return shaping;
}

namespace {

// The controls that need no teacher.
void add_fixed_terms(const Shaping& shaping, const Response& response,
                     std::span<const float> student_logp, std::vector<double>& advantage) {
  const Method& method = shaping.method;
  if (method.bonus != 0 && !shaping.bonus_ids.empty()) {
    ANTISD_CHECK_EQ(response.ids.size(), advantage.size());
    for (std::size_t i = 0; i < advantage.size(); ++i)
      if (shaping.bonus_ids.contains(response.ids[i])) advantage[i] += method.bonus;
  }
  if (method.penalty.below > 0 && method.penalty.size != 0) {
    const double limit = std::log(method.penalty.below);
    for (std::size_t i = 0; i < advantage.size(); ++i)
      if (student_logp[i] < limit) advantage[i] -= method.penalty.size;
  }
}

TokenAdvantages taught_advantages(const Shaping& shaping, const Response& response,
                                  std::span<const float> student_logp) {
  const Method& method = shaping.method;
  ANTISD_CHECK(response.group_advantage.has_value());
  TokenAdvantages tokens;
  tokens.group_advantage = method.group_advantage ? *response.group_advantage : 0;
  tokens.advantage.assign(student_logp.size(), tokens.group_advantage);
  if (method.sign == 0) return tokens;

  tokens.u = log_ratios(method, response.teacher.logp, student_logp);
  for (const double u : tokens.u) {
    const double kept = std::abs(u) > shaping.outlier_limit ? 0 : bounded(u, method.signal.clamp_u);
    tokens.phi.push_back(method.divergence == Divergence::kJsd ? phi(kept) : kept);
  }
  const std::int64_t longest = method.signal.max_response_tokens;
  if (longest > 0 && std::ssize(student_logp) >= longest) return tokens;
  tokens.lambda = response.lambda;
  if (tokens.lambda == 0) return tokens;  // bit for bit GRPO

  const std::vector<double> term = terms(method, tokens.phi);
  for (std::size_t i = 0; i < term.size(); ++i)
    tokens.advantage[i] = compose(method, tokens.group_advantage, tokens.lambda, term[i]);
  return tokens;
}

}  // namespace

TokenAdvantages token_advantages(const Shaping& shaping, const Response& response,
                                 std::span<const float> student_logp) {
  TokenAdvantages tokens = taught_advantages(shaping, response, student_logp);
  add_fixed_terms(shaping, response, student_logp, tokens.advantage);
  return tokens;
}

std::set<TokenId> bonus_ids(const Tokenizer& tokenizer, const std::vector<std::string>& words) {
  std::set<std::string> left(words.begin(), words.end());
  std::set<TokenId> found;
  for (TokenId id = 0; id < tokenizer.vocabulary_size() && !words.empty(); ++id) {
    std::string text = tokenizer.decode({&id, 1});
    const std::size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string::npos) continue;
    text = text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
    if (std::ranges::find(words, text) == words.end()) continue;
    found.insert(id);
    left.erase(text);
  }
  if (!left.empty()) {
    throw InputError(
        fmt::format("no token of the model is the word '{}'", *left.begin()),
        {.where = "method.bonus.words", .remedy = "`antisd tokenize` shows how the model cuts it"});
  }
  return found;
}

TokenLosses token_losses(const Shaping& shaping, const Response& response,
                         const StudentTokens& student, MeanOver mean) {
  ANTISD_CHECK(!shaping.method.distils);  // SDPO has its own loss
  const LossConfig& rules = shaping.method.loss;
  const bool on_policy = student.old_logp.empty();
  if (!on_policy) ANTISD_CHECK_EQ(student.old_logp.size(), student.logp.size());
  if (needs_reference(rules)) ANTISD_CHECK_EQ(student.reference.size(), student.logp.size());
  if (rules.entropy_coef > 0) ANTISD_CHECK_EQ(student.entropy.size(), student.logp.size());
  ANTISD_CHECK_LT(0, mean.tokens);

  TokenLosses losses;
  losses.advantages =
      token_advantages(shaping, response, on_policy ? student.logp : student.old_logp);
  std::vector<double> log_ratio(student.logp.size(), 0.0);
  for (std::size_t i = 0; i < log_ratio.size() && !on_policy; ++i) {
    log_ratio[i] = static_cast<double>(student.logp[i]) - student.old_logp[i];
    losses.log_ratio += log_ratio[i];
  }
  if (rules.ratio == "sequence" && !log_ratio.empty())
    log_ratio.assign(log_ratio.size(), losses.log_ratio / static_cast<double>(log_ratio.size()));

  losses.rollout =
      rollout_weights(rules, on_policy ? student.logp : student.old_logp, response.sampling_logp);
  const std::int64_t kept = losses.rollout.kept(std::ssize(student.logp));
  const double factor = kept > 0 ? aggregation_factor(rules, kept, mean) : 0;
  const bool cispo = rules.policy == "cispo";
  for (std::size_t i = 0; i < student.logp.size(); ++i) {
    if (losses.rollout.masked(i)) {
      losses.loss.push_back(0);
      losses.gradient.push_back(0);
      continue;
    }
    const double advantage = losses.advantages.advantage[i];
    const double weight = losses.rollout.at(i);
    const ClippedLoss policy = cispo ? cispo_loss(advantage, log_ratio[i], student.logp[i], rules)
                                     : clipped_loss(advantage, log_ratio[i], rules);
    losses.clipped += policy.clipped;
    losses.dual_clipped += policy.dual_clipped;
    TokenLoss token{weight * policy.loss, weight * policy.gradient};
    add_loss_terms(rules,
                   {.logp = student.logp[i],
                    .reference = student.reference.empty() ? 0 : student.reference[i],
                    .entropy = student.entropy.empty() ? 0 : student.entropy[i]},
                   token, losses.added, factor);
    losses.loss.push_back(factor * token.loss);
    losses.gradient.push_back(factor * token.gradient / static_cast<double>(mean.tokens));
  }
  return losses;
}

void add_sums(NamedSums& sums, const TokenLosses& losses, std::span<const float> student_entropy) {
  const TokenAdvantages& tokens = losses.advantages;
  const auto add = [&](std::string_view name, const auto& values) {
    Moments& moments = sums[name];
    for (const double value : values)
      moments.add(value);
  };
  Moments& loss = sums["loss"];
  for (std::size_t i = 0; i < losses.loss.size(); ++i)
    if (!losses.rollout.masked(i)) loss.add(losses.loss[i]);
  add("advantage", tokens.advantage);
  add("u", tokens.u);
  add("phi", tokens.phi);
  add("entropy", student_entropy);
  Moments &term = sums["term"], &group_advantage = sums["group_advantage"];
  for (const double value : tokens.advantage) {
    term.add(std::abs(value - tokens.group_advantage));
    group_advantage.add(std::abs(tokens.group_advantage));
  }
  const std::int64_t count = losses.rollout.kept(std::ssize(losses.loss));
  if (!losses.rollout.ratio.empty()) {
    add("rollout_ratio", losses.rollout.ratio);
    sums["rollout_cut"].add_sum(static_cast<double>(losses.rollout.cut),
                                std::ssize(losses.rollout.ratio));
  }
  sums["clipped"].add_sum(static_cast<double>(losses.clipped), count);
  sums["dual_clipped"].add_sum(static_cast<double>(losses.dual_clipped), count);
  sums["log_ratio"].add_sum(losses.log_ratio, count);
  for (std::size_t i = 0; i < losses.added.size(); ++i)
    sums[loss_terms()[i].name].add_sum(losses.added[i], count);
}

}  // namespace antisd::inline algo
