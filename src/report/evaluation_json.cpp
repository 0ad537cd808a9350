#include "report/evaluation_json.h"

#include "core/error.h"

namespace antisd::inline report {
namespace {

constexpr std::size_t kMaxBenches = 100;
constexpr std::size_t kMaxPassValues = 1'024;

void copy_number(const Json& from, const char* key, Json& to) {
  const auto found = from.find(key);
  if (found != from.end() && found->is_number()) to[key] = *found;
}

bool is_interval(const Json& value) {
  return value.is_array() && value.size() == 2 && value[0].is_number() && value[1].is_number();
}

void copy_interval(const Json& from, const char* key, Json& to) {
  const auto found = from.find(key);
  if (found != from.end() && is_interval(*found)) to[key] = *found;
}

void copy_by_k(const Json& from, const char* key, bool intervals, Json& to) {
  const auto found = from.find(key);
  if (found == from.end() || !found->is_object()) return;
  Json values = Json::object();
  for (const auto& [k, value] : found->items()) {
    if (values.size() >= kMaxPassValues) break;
    if (intervals ? is_interval(value) : value.is_number()) values[k] = value;
  }
  to[key] = std::move(values);
}

Json bench_json(const Json& bench) {
  Json out = Json::object();
  for (const char* key : {"problems", "n", "avg", "truncated", "mean_tokens", "extraction_failed",
                          "grader_failed", "samples"})
    copy_number(bench, key, out);
  copy_interval(bench, "avg_interval", out);
  copy_by_k(bench, "pass", false, out);
  copy_by_k(bench, "pass_interval", true, out);
  return out;
}

}  // namespace

Json evaluation_json(const Json& summary) {
  const auto benches = summary.is_object() ? summary.find("benches") : summary.end();
  if (!summary.is_object() || benches == summary.end() || !benches->is_object())
    throw InputError("not a summary of an evaluation", {.where = "eval/*/summary.json"});
  Json out = {{"benches", Json::object()}};
  for (const auto& [name, bench] : benches->items()) {
    if (out["benches"].size() >= kMaxBenches) break;
    if (bench.is_object()) out["benches"][name] = bench_json(bench);
  }
  copy_number(summary, "average", out);
  copy_interval(summary, "average_interval", out);
  return out;
}

}  // namespace antisd::inline report
