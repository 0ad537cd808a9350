#include "report/inspect/inspection.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "algo/phi.h"
#include "algo/shaping.h"
#include "core/check.h"
#include "core/error.h"
#include "report/inspect/token_text.h"

namespace antisd::inline report {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kRunningPoints = 400;  // of a response's running sum

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts)
    all += text;
  return all;
}

Json rounded_column(const auto& values) {
  Json column = Json::array();
  for (const auto value : values)
    column.push_back(rounded(static_cast<double>(value)));
  return column;
}

Json or_null(const std::optional<double>& value) {
  return value ? rounded(*value) : Json(nullptr);
}

// [tokens, sum of u over them] along the response, ending with the whole. Tokens without a finite u
// add nothing.
Json running_sum(const std::vector<double>& u) {
  Json points = Json::array();
  const std::size_t stride = u.size() / kRunningPoints + 1;
  double sum = 0;
  for (std::size_t i = 0; i < u.size(); ++i) {
    if (std::isfinite(u[i])) sum += u[i];
    if ((i + 1) % stride == 0 || i + 1 == u.size()) points.push_back({i + 1, rounded(sum)});
  }
  return points;
}

double sum_of_finite(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) {
    if (std::isfinite(value)) sum += value;
  }
  return sum;
}

// ---- a rollout row ----

[[noreturn]] void bad_field(const std::string& name, const std::string& what) {
  throw InputError(fmt::format("'{}' {}", name, what),
                   {.remedy = "docs/runs.md describes a rollout row"});
}

// Nothing if it is null or absent.
template <typename T>
std::optional<std::vector<T>> read_numbers(const Json& row, const std::string& name,
                                           std::size_t size) {
  const auto at = row.find(name);
  if (at == row.end() || at->is_null()) return std::nullopt;
  if (!at->is_array()) bad_field(name, "is not a list");
  if (at->size() != size)
    bad_field(name, fmt::format("has {} numbers for {} tokens", at->size(), size));
  std::vector<T> values;
  for (const Json& value : *at) {
    if (!value.is_number() && !value.is_null())
      bad_field(name, "holds something that is not a number");
    values.push_back(value.is_null() ? std::numeric_limits<T>::quiet_NaN() : value.get<T>());
  }
  return values;
}

std::vector<TokenId> read_ids(const Json& row, const std::string& name) {
  const auto at = row.find(name);
  if (at == row.end() || at->is_null()) return {};
  std::vector<TokenId> ids;
  if (!at->is_array()) bad_field(name, "is not a list");
  for (const Json& value : *at) {
    if (!value.is_number_integer() || value.get<double>() < 0 || value.get<double>() > kMaxTokenId)
      bad_field(name, "holds something that is not a token id");
    ids.push_back(value.get<TokenId>());
  }
  return ids;
}

std::optional<double> read_number(const Json& row, const std::string& name) {
  const auto at = row.find(name);
  if (at == row.end() || at->is_null()) return std::nullopt;
  if (!at->is_number()) bad_field(name, "is not a number");
  return at->get<double>();
}

std::optional<std::int64_t> read_integer(const Json& row, const std::string& name) {
  const auto at = row.find(name);
  if (at == row.end() || at->is_null()) return std::nullopt;
  if (!at->is_number_integer()) bad_field(name, "is not an integer");
  return at->get<std::int64_t>();
}

std::string read_text(const Json& row, const std::string& name) {
  const auto at = row.find(name);
  if (at == row.end() || at->is_null()) return "";
  return at->is_string() ? at->get<std::string>() : to_json_line(*at);
}

}  // namespace

Json rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (std::abs(value) > 1e9) return value;
  return std::round(value * 1e6) / 1e6 + 0.0;  // avoids -0
}

void describe(Inspection& inspection, const Tokenizer& tokenizer) {
  const std::vector<TokenId>& prompt = inspection.prompt_ids;
  inspection.tokens =
      token_texts(tokenizer, inspection.response.ids, prompt.empty() ? -1 : prompt.back());
  inspection.special.clear();
  for (const TokenId id : inspection.response.ids)
    inspection.special.push_back(id < tokenizer.vocabulary_size() && tokenizer.is_special(id));
  inspection.prompt = joined(token_texts(tokenizer, inspection.prompt_ids));
  inspection.teacher_prompt =
      joined(token_texts(tokenizer, inspection.response.context.prompt_ids));
}

void weigh(Inspection& inspection, const Method& method, std::span<const double> recorded) {
  const std::vector<float>&s = inspection.response.student.logp,
        &t = inspection.response.teacher.logp;
  ANTISD_CHECK_EQ(s.size(), t.size());
  inspection.u.clear();
  for (std::size_t i = 0; i < s.size(); ++i)
    inspection.u.push_back(static_cast<double>(t[i]) - s[i]);

  Response weighed = inspection.response;
  weighed.group_advantage = inspection.response.group_advantage.value_or(0);
  TokenAdvantages tokens = token_advantages({.method = method}, weighed, s);
  inspection.phi = tokens.phi;
  if (tokens.phi.empty()) {  // the method has no term; phi is still shown
    for (const double u : inspection.u)
      inspection.phi.push_back(phi(u));
  }
  inspection.advantage = std::move(tokens.advantage);
  if (!recorded.empty()) inspection.advantage.assign(recorded.begin(), recorded.end());
  inspection.term.clear();
  for (const double advantage : inspection.advantage)
    inspection.term.push_back(advantage - tokens.group_advantage);

  const bool needs_group = method.group_advantage && !inspection.response.group_advantage;
  if (method.distils || needs_group) inspection.advantage.assign(s.size(), kNoValue);
  if (method.distils || (needs_group && method.composition == Composition::kMultiplicative))
    inspection.term.assign(s.size(), kNoValue);
}

bool is_rollout_row(const Json& row) {
  return row.contains("response_ids") &&
         (row.contains("student_logp") || row.contains("teacher_prompt_ids"));
}

RolloutRow read_rollout_row(const Json& row, double lambda) {
  RolloutRow read;
  Inspection& inspection = read.inspection;
  inspection.response.ids = read_ids(row, "response_ids");
  const std::size_t size = inspection.response.ids.size();
  const auto floats = [&](const char* name) {
    return read_numbers<float>(row, name, size).value_or(std::vector<float>());
  };
  const auto is_there = [&](const char* name) { return row.value(name, Json()).is_array(); };
  inspection.response.student = {floats("student_logp"), floats("student_entropy")};
  inspection.response.teacher = {floats("teacher_logp"), floats("teacher_entropy")};
  read.has_scores = is_there("student_logp") && is_there("teacher_logp");
  read.token_advantage =
      read_numbers<double>(row, "token_advantage", size).value_or(std::vector<double>());
  inspection.id = read_text(row, row.contains("prompt_id") ? "prompt_id" : "id");
  inspection.step = read_integer(row, "step");
  inspection.sample = read_integer(row, "sample").value_or(0);
  inspection.response.verdict.reward = read_number(row, "reward");
  inspection.response.verdict.reason = read_text(row, "reason");
  if (const auto correct = row.find("correct"); correct != row.end() && correct->is_boolean())
    inspection.response.verdict.right = correct->get<bool>();
  if (row.value("truncated", Json()) == Json(true))
    inspection.response.finish = FinishReason::kLength;
  inspection.response.group_advantage = read_number(row, "group_advantage");
  inspection.response.lambda = read_number(row, "lambda").value_or(lambda);
  inspection.source = read_text(row, "context_source");
  if (row.contains("text") && row["text"].is_string()) read.text = row["text"].get<std::string>();
  inspection.prompt_ids = read_ids(row, "prompt_ids");
  inspection.response.context.prompt_ids = read_ids(row, "teacher_prompt_ids");
  return read;
}

void check_text(const RolloutRow& row, const Tokenizer& tokenizer) {
  if (!row.text) return;
  std::vector<TokenId> known = row.inspection.response.ids;  // padding ids have no text
  std::erase_if(known, [&](TokenId id) { return id >= tokenizer.vocabulary_size(); });
  // Partial characters became U+FFFD when the row was written.
  const std::string text =
      to_json_line(Json(tokenizer.decode(known, /*skip_special_tokens=*/true)));
  if (text == to_json_line(Json(*row.text))) return;
  const auto beginning = [](const std::string& json) {
    std::size_t end = std::min<std::size_t>(json.size(), 60);
    while (end < json.size() && (json[end] & 0xC0) == 0x80)  // to the end of a character
      ++end;
    return json.substr(0, end);
  };
  throw InputError(
      fmt::format("the model's tokenizer reads response_ids as {}..., the run wrote {}...",
                  beginning(text), beginning(to_json_line(Json(*row.text)))),
      {.remedy = "give the model that the run trained, or one with its tokenizer"});
}

Inspection recorded_inspection(RolloutRow row, const Tokenizer& tokenizer, const Method& method) {
  ANTISD_CHECK(row.has_scores);
  describe(row.inspection, tokenizer);
  weigh(row.inspection, method, row.token_advantage);
  return std::move(row.inspection);
}

Json to_json(const Inspection& inspection, std::span<const std::uint8_t> kinds) {
  Json json = {{"id", inspection.id}};
  if (inspection.step) json["step"] = *inspection.step;
  json["sample"] = inspection.sample;
  json["reward"] = or_null(inspection.response.verdict.reward);
  if (inspection.response.verdict.right) json["correct"] = *inspection.response.verdict.right;
  json["reason"] = inspection.response.verdict.reason;
  json["truncated"] = inspection.response.truncated();
  json["group_advantage"] = or_null(inspection.response.group_advantage);
  json["lambda"] = rounded(inspection.response.lambda);
  json["source"] = inspection.source;
  json["token_count"] = inspection.response.ids.size();
  json["sum_u"] = rounded(sum_of_finite(inspection.u));
  json["prompt"] = inspection.prompt;
  json["teacher_prompt"] = inspection.teacher_prompt;
  json["prompt_ids"] = inspection.prompt_ids;
  json["teacher_prompt_ids"] = inspection.response.context.prompt_ids;
  json["ids"] = inspection.response.ids;
  json["tokens"] = inspection.tokens;
  json["special"] = Json::array();
  for (std::size_t i = 0; i < inspection.special.size(); ++i) {
    if (inspection.special[i]) json["special"].push_back(i);
  }
  json["kind"] = std::vector<int>(kinds.begin(), kinds.end());
  json["s"] = rounded_column(inspection.response.student.logp);
  json["t"] = rounded_column(inspection.response.teacher.logp);
  json["u"] = rounded_column(inspection.u);
  json["phi"] = rounded_column(inspection.phi);
  json["term"] = rounded_column(inspection.term);
  json["advantage"] = rounded_column(inspection.advantage);
  json["h_s"] = rounded_column(inspection.response.student.entropy);
  json["h_t"] = rounded_column(inspection.response.teacher.entropy);
  json["running_sum"] = running_sum(inspection.u);
  return json;
}

}  // namespace antisd::inline report
