#include "plan/lengths.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <sstream>

#include <fmt/format.h>

#include "core/error.h"
#include "core/rng.h"
#include "io/jsonl.h"
#include "run/run_files.h"

namespace antisd::inline plan {
namespace {

namespace fs = std::filesystem;

constexpr double kNormal99 = 2.3263478740408408;  // of a standard normal distribution

// ln(p99 / mean) = kNormal99 s - s^2 / 2, of which the smaller root counts.
double sigma_of(const LengthSpec& spec) {
  const double root = kNormal99 * kNormal99 - 2 * std::log(spec.p99 / spec.mean);
  if (spec.mean < 1 || spec.p99 < spec.mean || root < 0) {
    throw InputError(fmt::format("no long-tailed lengths have a mean of {} and 99 % below {}",
                                 spec.mean, spec.p99),
                     {.where = "--lengths", .remedy = "p99 has to be 1 to 14 times the mean"});
  }
  return kNormal99 - std::sqrt(root);
}

double number_of(const std::string& text) {
  std::size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != text.size() || !(value >= 1 && value <= 1e9))
    throw InputError(fmt::format("'{}' is not a number of tokens", text), {.where = "--lengths"});
  return value;
}

std::map<std::int64_t, fs::path> dumps_of(const fs::path& run) {
  std::map<std::int64_t, fs::path> dumps;  // by step
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(run / kRolloutsFolder, ignored))
    if (const auto step = step_of_rollouts(entry.path().filename().string()))
      dumps[*step] = entry.path();
  return dumps;
}

std::vector<GroupLengths> read_dump(const fs::path& file) {
  std::vector<GroupLengths> groups;
  std::map<std::string, std::size_t> by_prompt;
  JsonlReader reader(file);
  for (Json row; reader.next(row);) {
    if (!row.contains("prompt_ids") || !row.contains("response_ids") || !row.contains("prompt_id"))
      throw InputError("not a recorded response", {.where = reader.where()});
    const auto [found, is_new] =
        by_prompt.try_emplace(row["prompt_id"].get<std::string>(), groups.size());
    if (is_new) groups.push_back({static_cast<std::int64_t>(row["prompt_ids"].size()), {}});
    groups[found->second].responses.push_back(
        std::max<std::int64_t>(1, static_cast<std::int64_t>(row["response_ids"].size())));
  }
  return groups;
}

// The last row that has the lengths.
LengthSpec spec_of_metrics(const fs::path& run) {
  LengthSpec spec;
  if (fs::exists(run / kMetricsFile)) {
    JsonlReader reader(run / kMetricsFile);
    for (Json row; reader.next(row);) {
      if (!row.contains("response_length/mean") || !row.contains("response_length/max")) continue;
      spec.mean = row["response_length/mean"].get<double>();
      spec.p99 = row["response_length/max"].get<double>();
      if (row.contains("prompt_length/mean"))
        spec.prompt = std::llround(row["prompt_length/mean"].get<double>());
    }
  }
  if (spec.mean <= 0) {
    throw InputError(
        "the run has recorded no lengths",
        {.where = run.string(), .remedy = "name a run with metrics.jsonl, or give --lengths"});
  }
  spec.p99 = std::clamp(spec.p99, spec.mean, 14 * spec.mean);
  return spec;
}

}  // namespace

LengthSpec parse_lengths(const std::string& text) {
  LengthSpec spec;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t equals = part.find('=');
    const std::string key = part.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : part.substr(equals + 1);
    if (key == "mean") {
      spec.mean = number_of(value);
    } else if (key == "p99") {
      spec.p99 = number_of(value);
    } else if (key == "prompt") {
      spec.prompt = std::llround(number_of(value));
    } else {
      throw InputError(fmt::format("'{}' is not of the form mean=8000,p99=32000", text),
                       {.where = "--lengths", .remedy = "keys are mean, p99 and prompt"});
    }
  }
  if (spec.mean <= 0 || spec.p99 <= 0)
    throw InputError("mean and p99 are needed",
                     {.where = "--lengths", .remedy = "e.g. mean=8000,p99=32000"});
  sigma_of(spec);
  return spec;
}

Lengths Lengths::drawn(const LengthSpec& spec, std::uint64_t seed) {
  Lengths lengths;
  lengths.spec_ = spec;
  lengths.seed_ = seed;
  lengths.text_ = fmt::format("drawn: mean {:.0f}, 99 % below {:.0f}, prompts of {}", spec.mean,
                              spec.p99, spec.prompt);
  return lengths;
}

Lengths Lengths::within(std::int64_t longest, std::int64_t prompt, std::uint64_t seed) {
  const double most = static_cast<double>(std::max<std::int64_t>(4, longest));
  return drawn({.mean = most / 4, .p99 = most, .prompt = prompt}, seed);
}

Lengths Lengths::of_run(const fs::path& run, std::uint64_t seed) {
  const std::map<std::int64_t, fs::path> dumps = dumps_of(run);
  if (dumps.empty()) return drawn(spec_of_metrics(run), seed);
  Lengths lengths;
  lengths.seed_ = seed;
  lengths.recorded_ = read_dump(dumps.rbegin()->second);
  if (lengths.recorded_.empty())
    throw InputError("it holds no response", {.where = dumps.rbegin()->second.string()});
  lengths.text_ = fmt::format("those of {}", dumps.rbegin()->second.string());
  return lengths;
}

GroupLengths Lengths::draw(std::uint32_t prompt, std::int64_t samples, std::uint32_t salt) const {
  const CounterRng rng(seed_, RandomStream::kTask);
  const auto uniform = [&](std::int64_t sample, std::uint32_t position) {
    return rng.uniform({.step = salt,
                        .prompt = prompt,
                        .sample = static_cast<std::uint32_t>(sample),
                        .position = position});
  };
  GroupLengths group;
  if (!recorded_.empty()) {
    const GroupLengths& source =
        recorded_[(prompt + salt * 7919u) % recorded_.size()];  // all of them, in turn
    group.prompt = source.prompt;
    for (std::int64_t s = 0; s < samples; ++s)
      group.responses.push_back(
          source.responses[static_cast<std::size_t>(s) % source.responses.size()]);
    return group;
  }
  const double sigma = sigma_of(spec_), mu = std::log(spec_.mean) - sigma * sigma / 2;
  group.prompt = spec_.prompt;
  for (std::int64_t s = 0; s < samples; ++s) {
    const double normal = std::sqrt(-2 * std::log(1 - uniform(s, 0))) *
                          std::cos(2 * std::numbers::pi * uniform(s, 1));
    group.responses.push_back(std::llround(std::exp(mu + sigma * normal)));
  }
  return group;
}

std::vector<GroupLengths> Lengths::groups(std::int64_t prompts, std::int64_t samples,
                                          std::int64_t longest, std::uint32_t salt) const {
  std::vector<GroupLengths> groups;
  for (std::int64_t p = 0; p < prompts; ++p) {
    groups.push_back(draw(static_cast<std::uint32_t>(p), samples, salt));
    GroupLengths& group = groups.back();
    group.prompt =
        std::clamp<std::int64_t>(group.prompt, 1, std::max<std::int64_t>(1, longest - 1));
    for (std::int64_t& length : group.responses)
      length = std::clamp<std::int64_t>(length, 1, longest - group.prompt);
  }
  return groups;
}

}  // namespace antisd::inline plan
