// The losses of GRPO's family against TRL's own, recorded by tools/record_loss_fixtures.py: every
// aggregation, ratio and clipping, with and without the KL term, and CISPO.
#include <filesystem>

#include <gmock/gmock.h>

#include "algo/shaping.h"
#include "io/atomic_file.h"
#include "io/json.h"

namespace antisd::inline trainer {
namespace {

TEST(PeerLosses, AreTrls) {
  const Json file = parse_json(
      read_file(std::filesystem::path(ANTISD_SOURCE_DIR) / "testdata/algo/losses.json"), "losses");
  const auto rows = [&](const char* name) {
    return file.at(name).get<std::vector<std::vector<float>>>();
  };
  const auto logp = rows("logp"), old = rows("old"), reference = rows("reference");
  const auto advantages = file.at("advantage").get<std::vector<double>>();
  MeanOver mean{.tokens = 0, .sequences = std::ssize(logp)};
  for (const auto& row : logp)
    mean.tokens += std::ssize(row);
  ASSERT_EQ(file.at("cases").size(), 34u);
  for (const Json& row : file.at("cases")) {
    LossConfig rules;
    rules.policy = row.at("policy");
    rules.ratio = row.at("ratio");
    rules.aggregation = row.at("aggregation");
    rules.norm_tokens = file.at("norm_tokens");
    rules.clip_low = row.at("clip_low");
    rules.clip_high = row.at("clip_high");
    rules.kl_coef = row.at("kl_coef");
    MethodConfig config;
    config.name = "grpo";
    const Shaping shaping{.method = resolve_method(config, rules)};
    double loss = 0;
    for (std::size_t r = 0; r < logp.size(); ++r) {
      Response response;
      response.group_advantage = advantages[r];
      const TokenLosses losses =
          token_losses(shaping, response,
                       {.logp = logp[r], .old_logp = old[r], .reference = reference[r]}, mean);
      for (const double value : losses.loss)
        loss += value / static_cast<double>(mean.tokens);
      const auto expected = row.at("gradient").at(r).get<std::vector<double>>();
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(losses.gradient[i], expected[i], 1e-9) << row.dump() << r << " " << i;
    }
    EXPECT_NEAR(loss, row.at("loss").get<double>(), 1e-9) << row.dump();
  }
}

}  // namespace
}  // namespace antisd::inline trainer
