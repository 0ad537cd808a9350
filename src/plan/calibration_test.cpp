#include "plan/calibration.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <numbers>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "core/error.h"
#include "io/atomic_file.h"
#include "plan/model_names.h"
#include "plan/sampling_time.h"
#include "trainer/holdings.h"

namespace antisd::inline plan {
namespace {

using ::testing::AnyOf;
using ::testing::Eq;
using ::testing::HasSubstr;

// The words of bench/RESULTS.md below the heading that begins so, with single spaces.
std::string section_of_results(const std::string& heading) {
  const std::string text = read_file(std::filesystem::path(ANTISD_SOURCE_DIR) / "bench/RESULTS.md");
  const std::size_t begin = text.find("## " + heading);
  if (begin == std::string::npos) return "";
  std::string words;
  for (const char c : text.substr(begin, text.find("\n## ", begin + 1) - begin)) {
    const bool space = c == ' ' || c == '\n';
    if (!space || (!words.empty() && words.back() != ' ')) words += space ? ' ' : c;
  }
  return words;
}

std::int64_t whole(const Json& row, const char* key) {
  return row.at(key).get<std::int64_t>();
}

// What a row describes, on an H200.
class Prediction {
 public:
  explicit Prediction(const Json& row)
      : row_(row),
        rates_(rates_of(find_card("h200"))),
        shape_(*known_shape(row.at("model").get<std::string>())),
        time_(shape_, rates_) {}

  double value() const {
    const std::string kind = row_.at("row");
    if (kind == "forward") return 1e3 * time_.forward(batch());
    if (kind == "head") return 1e3 * time_.head(batch());
    if (kind == "backward") return 1e3 * time_.backward(batch(), recomputed());
    if (kind == "adamw") return 1e3 * adamw();
    if (kind == "update") {
      return 1e3 * (time_.forward(batch()) + time_.head(batch()) +
                    time_.backward(batch(), recomputed()) + adamw());
    }
    if (kind == "exchange") return 1e3 * exchange();
    if (kind == "teacher") return 1e3 * teacher();
    if (kind == "experts") return experts();
    if (kind == "decode") {
      const SamplingTime run = rollout();
      return 1e3 * run.decode / static_cast<double>(run.steps);
    }
    if (kind == "rollout") {
      const SamplingTime run = rollout();
      return static_cast<double>(run.new_tokens) / run.seconds();
    }
    if (kind == "step_sampling") return step_sampling();
    if (kind == "step_update") return step_update();
    if (kind == "step_teacher") return step_teacher();
    if (kind == "step") return step_sampling() + step_update();
    ADD_FAILURE() << "no prediction of " << kind;
    return 0;
  }

 private:
  bool recomputed() const { return row_.at("recomputed").get<bool>(); }
  PassWork batch() const {
    const std::int64_t length = whole(row_, "length");
    const std::vector<PassSequence> sequences(static_cast<std::size_t>(whole(row_, "sequences")),
                                              {length, 0, length});
    return time_.work_of(sequences);
  }
  double adamw() const {
    return time_.adamw(static_cast<double>(shape_.parameter_count()), /*gradient_bytes=*/2);
  }

  double exchange() const {
    const Holdings held(shape_, {});
    return rates_.exchange_start + rates_.exchange * held.sent() +
           (row_.at("weights").get<bool>() ? rates_.fetch * held.whole_layers() : 0);
  }

  double teacher() const {
    const std::int64_t prompt = whole(row_, "prompt"), response = whole(row_, "new");
    std::vector<PassSequence> sequences;
    for (std::int64_t i = 0; i < whole(row_, "sequences"); ++i) {
      const bool shares = i > 0 && row_.at("shared").get<bool>();
      sequences.push_back({prompt + response, shares ? prompt : 0, response});
    }
    const PassWork work = time_.work_of(sequences);
    return time_.forward(work) + time_.head(work);
  }

  // The experts of a layer against a dense unit of equal FLOPs.
  double experts() const {
    const double tokens = static_cast<double>(whole(row_, "tokens"));
    const double units = static_cast<double>(shape_.experts_per_token * shape_.expert_intermediate);
    const double hidden = static_cast<double>(shape_.hidden);
    const double product = tokens * 6 * hidden * units / rates_.products;
    const double gated = tokens * 6 * units / rates_.elementwise;
    const double routed =
        tokens * static_cast<double>(shape_.experts_per_token) * hidden * rates_.routed;
    const double passes = row_.at("backward").get<bool>() ? 3 : 1;
    return passes * (rates_.experts * product + gated + routed) / (passes * (product + gated));
  }

  SamplingTime rollout() const {
    const std::int64_t sequences = whole(row_, "sequences"), group = whole(row_, "group");
    const std::int64_t prompt = whole(row_, "prompt"), response = whole(row_, "new");
    const std::vector<GroupLengths> groups(
        static_cast<std::size_t>(sequences / group),
        {prompt, std::vector<std::int64_t>(static_cast<std::size_t>(group), response)});
    return simulate_sampling(time_, groups,
                             {.pages = 2 * sequences * (prompt + response) / 32 + 8,
                              .slots = static_cast<int>(sequences),
                              .longest = prompt + response});
  }

  // As bench/step.cpp makes them: responses end at random, half of them at the limit.
  std::vector<GroupLengths> step_groups() const {
    const std::int64_t groups = whole(row_, "prompts"), size = whole(row_, "group");
    const double limit = std::round(2 * std::numbers::ln2 * row_.at("new").get<double>());
    const double rate = std::numbers::ln2 / limit;
    std::vector<GroupLengths> found;
    for (std::int64_t g = 0; g < groups; ++g) {
      found.push_back({whole(row_, "prompt"), {}});
      for (std::int64_t s = 0; s < size; ++s) {
        const double u =
            (static_cast<double>(s * groups + g) + 0.5) / static_cast<double>(groups * size);
        found.back().responses.push_back(std::llround(std::min(limit, -std::log(1 - u) / rate)) +
                                         (u < 1e-3 ? 1 : 0));
      }
    }
    return found;
  }

  double step_sampling() const {
    const std::vector<GroupLengths> groups = step_groups();
    return rates_.sampling_start +
           simulate_sampling(time_, groups, {.pages = 40'000, .longest = 1024 + 2839}).seconds();
  }

  double passes(const std::vector<PassSequence>& sequences, bool gradients) const {
    double seconds = 0;
    std::vector<PassSequence> run;
    std::int64_t tokens = 0;
    const auto finish = [&] {
      const PassWork work = time_.work_of(run);
      seconds += time_.forward(work) + time_.head(work) +
                 (gradients ? time_.backward(work, /*recomputed=*/1) : 0);
      run.clear();
      tokens = 0;
    };
    for (const PassSequence& sequence : sequences) {
      if (tokens + sequence.tokens - sequence.shared > 32'768) finish();
      tokens += sequence.tokens - (run.empty() ? 0 : sequence.shared);
      run.push_back(sequence);
    }
    finish();
    return seconds;
  }

  double step_update() const {
    std::vector<PassSequence> sequences;
    for (const GroupLengths& group : step_groups())
      for (std::size_t s = 0; s < group.responses.size(); ++s)
        sequences.push_back(
            {group.prompt + group.responses[s], s > 0 ? group.prompt : 0, group.responses[s]});
    return passes(sequences, true) +
           time_.adamw(static_cast<double>(shape_.parameter_count()), /*gradient_bytes=*/4);
  }

  // A response is shown a right one, which has ended before the limit. Two of eight are right, so
  // that every second context is its neighbour's.
  double step_teacher() const {
    std::vector<PassSequence> sequences;
    for (const GroupLengths& group : step_groups()) {
      const std::int64_t limit = std::ranges::max(group.responses);
      std::int64_t ended = 0, tokens = 0;
      for (const std::int64_t length : group.responses) {
        ended += length < limit ? 1 : 0;
        tokens += length < limit ? length : 0;
      }
      const std::int64_t context = group.prompt + tokens / ended;
      for (std::size_t s = 0; s < group.responses.size(); ++s)
        sequences.push_back({context + group.responses[s],
                             s == 0       ? 0
                             : s % 2 == 0 ? group.prompt
                                          : context,
                             group.responses[s]});
    }
    return passes(sequences, false);
  }

  const Json& row_;
  Rates rates_;
  ModelShape shape_;
  PassTime time_;
};

TEST(Calibration, EveryMeasuredRowIsPredictedWithin15Percent) {
  int held_out = 0;
  for (const Json& row : calibration_rows("row")) {
    const double measured = row.at("value"), predicted = Prediction(row).value();
    const std::string line =
        fmt::format("{:<13} {:<13} {:>9} {:<9} predicted {:>9.4g} {:+.1f} %, {}",
                    row.at("row").get<std::string>(), row.at("model").get<std::string>(), measured,
                    row.at("unit").get<std::string>(), predicted, 100 * (predicted / measured - 1),
                    row.at("use").get<std::string>());
    std::cout << line << "\n";
    EXPECT_NEAR(predicted / measured, 1, 0.15) << line;
    EXPECT_THAT(row.at("use"), AnyOf(Eq("fitted"), Eq("held out")));
    held_out += row.at("use") == "held out" ? 1 : 0;
  }
  EXPECT_GE(held_out, 40);
}

TEST(Calibration, RowsAreThoseOfTheResults) {
  for (const Json& row : calibration_rows("row"))
    EXPECT_THAT(section_of_results(row.at("section")), HasSubstr(row.at("text").get<std::string>()))
        << row.dump();
  for (const Json& rate : calibration_rows("rate")) {
    if (rate.at("source") != "measured") {
      EXPECT_THAT(rate.at("source"), AnyOf(Eq("data sheet"), Eq("assumed")));
      continue;
    }
    EXPECT_NE(section_of_results(rate.at("section")), "") << rate.dump();
  }
}

TEST(Calibration, OtherCardsAreScaledByTheirDataSheets) {
  const Rates h200 = rates_of(find_card("h200")), h20 = rates_of(find_card("h20"));
  EXPECT_NEAR(h20.products / h200.products, 148.0 / 989, 1e-12);
  EXPECT_NEAR(h20.read / h200.read, 4.0 / 4.8, 1e-12);
  EXPECT_NEAR(h20.logit / h200.logit, 4.8 / 4.0, 1e-12);  // a time
  EXPECT_EQ(h20.decode_layer, h200.decode_layer);
  for (const char* name :
       {"h200", "h100", "h20", "a100-40", "a100-80", "l40s", "rtx4090", "rtx5090", "b200"})
    EXPECT_EQ(find_card(name).name, name);
  EXPECT_THROW(find_card("h2"), InputError);
  EXPECT_EQ(card_of_gpu("NVIDIA H200", 150e9)->name, "h200");
  EXPECT_EQ(card_of_gpu("NVIDIA H20", 102e9)->name, "h20");
  EXPECT_EQ(card_of_gpu("NVIDIA A100-SXM4-40GB", 42e9)->name, "a100-40");
  EXPECT_EQ(card_of_gpu("NVIDIA A100-SXM4-80GB", 85e9)->name, "a100-80");
  EXPECT_EQ(card_of_gpu("Tesla T4", 16e9), nullptr);
}

}  // namespace
}  // namespace antisd::inline plan
