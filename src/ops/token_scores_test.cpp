// Known values of log-probability and entropy, their independence of blocks, and their
// gradients by finite differences of a plain formula in double.
#include "ops/token_scores.h"

#include <gmock/gmock.h>

namespace antisd::inline ops {
namespace {

using Matrix = std::vector<std::vector<double>>;

at::Tensor tensor_of(const Matrix& rows) {
  at::Tensor result = at::empty(
      {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(rows.front().size())});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < rows[i].size(); ++j)
      result[static_cast<std::int64_t>(i)][static_cast<std::int64_t>(j)] = rows[i][j];
  }
  return result;
}

// Values that fp32 holds exactly, so that both sides see the same.
Matrix random_matrix(std::size_t rows, std::size_t columns, std::uint64_t seed, double scale) {
  const at::Tensor values =
      at::randn({static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)},
                at::detail::createCPUGenerator(seed), at::kFloat) *
      scale;
  const float* next = values.const_data_ptr<float>();
  Matrix result(rows, std::vector<double>(columns));
  for (auto& row : result) {
    for (double& value : row)
      value = *next++;
  }
  return result;
}

at::Tensor ids_of(const std::vector<std::int32_t>& ids) {
  return at::tensor(at::ArrayRef<std::int32_t>(ids), at::kInt);
}

struct PlainScores {
  double logp, entropy;
};

// The textbook formulas for one token: softmax over all rows of the head.
PlainScores plain_scores(const std::vector<double>& hidden, const Matrix& head,
                         std::size_t vocabulary, std::int32_t target, double temperature) {
  std::vector<double> z(vocabulary);
  double sum = 0;
  for (std::size_t v = 0; v < vocabulary; ++v) {
    for (std::size_t j = 0; j < hidden.size(); ++j)
      z[v] += hidden[j] * head[v][j] / temperature;
    sum += std::exp(z[v]);
  }
  double entropy = 0;
  for (const double value : z) {
    const double log_p = value - std::log(sum);
    entropy -= std::exp(log_p) * log_p;
  }
  return {z[static_cast<std::size_t>(target)] - std::log(sum), entropy};
}

TEST(TokenScores, ThreeTokensByHand) {
  const at::Tensor hidden = at::ones({1, 1});
  const at::Tensor head =
      tensor_of({{std::log(0.7)}, {std::log(0.2)}, {std::log(0.1)}}).requires_grad_(true);
  const auto scores = token_scores(hidden, head, ids_of({1}), 1.0, 3, Gradients::kRecorded);
  EXPECT_NEAR(scores.logp.item<double>(), std::log(0.2), 1e-6);
  EXPECT_NEAR(scores.entropy.item<double>(), 0.801818553, 8e-6);
  scores.entropy.sum().backward();  // the hidden state is 1, so the head's gradient is dH/dz
  const double expected[] = {-0.311600526, 0.161523872, 0.150076654};
  for (int v = 0; v < 3; ++v)
    EXPECT_NEAR(head.grad()[v].item<double>(), expected[v], 3e-6) << v;
}

TEST(TokenScores, UniformOverAWholeVocabulary) {
  const std::int64_t vocabulary = 151'936;
  for (const double logit : {0.0, 25.0}) {
    const auto scores = token_scores(at::ones({2, 1}), at::full({vocabulary, 1}, logit),
                                     ids_of({0, 151'935}), 1.0, vocabulary, Gradients::kNone);
    for (int i = 0; i < 2; ++i) {
      EXPECT_NEAR(scores.entropy[i].item<double>(), 11.931215, 1e-5 * 11.931215);
      EXPECT_NEAR(scores.logp[i].item<double>(), -11.931215, 1e-5 * 11.931215);
    }
  }
}

TEST(TokenScores, BlocksChangeNothing) {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);  // thousands of blocks of one number each, not worth waking threads for
  const std::size_t tokens = 9, width = 24, vocabulary = 613;
  const at::Tensor hidden = tensor_of(random_matrix(tokens, width, 1, 1));
  const at::Tensor head = tensor_of(random_matrix(vocabulary + 3, width, 2, 0.7));
  std::vector<std::int32_t> targets;
  for (std::size_t i = 0; i < tokens; ++i)
    targets.push_back(static_cast<std::int32_t>((i * 7919) % vocabulary));
  targets.back() = static_cast<std::int32_t>(vocabulary - 1);
  const auto run = [&](ScoreBlocks blocks) {
    const at::Tensor h = hidden.clone().requires_grad_(true), w = head.clone().requires_grad_(true);
    const auto scores =
        token_scores(h, w, ids_of(targets), 0.8, vocabulary, Gradients::kRecorded, blocks);
    (scores.logp.sum() + 0.3 * scores.entropy.sum()).backward();
    return std::vector<at::Tensor>{scores.logp.detach(), scores.entropy.detach(), h.grad(),
                                   w.grad()};
  };
  const auto all = static_cast<std::int64_t>(vocabulary);
  const auto whole = run({.tokens = 512, .vocabulary = all});
  for (const std::int64_t token_block : {1, 7, 512}) {
    for (const std::int64_t vocabulary_block :
         {std::int64_t{1}, std::int64_t{7}, std::int64_t{512}, all}) {
      const auto parts = run({token_block, vocabulary_block});
      for (std::size_t i = 0; i < whole.size(); ++i) {
        const double scale = std::max(1.0, whole[i].abs().max().item<double>());
        EXPECT_LT((parts[i] - whole[i]).abs().max().item<double>(), 1e-5 * scale)
            << "result " << i << ", blocks " << token_block << " x " << vocabulary_block;
      }
    }
  }
  at::set_num_threads(threads);
}

TEST(TokenScores, GradientsAreTheSlopesOfThePlainFormula) {
  constexpr double kTemperature = 0.7, kStep = 1e-5;
  const std::size_t tokens = 4, width = 3, vocabulary = 11, padding = 2;
  Matrix hidden = random_matrix(tokens, width, 3, 1),
         head = random_matrix(vocabulary + padding, width, 4, 1);
  const std::vector<std::int32_t> targets = {0, 10, 6, 6};
  const std::vector<double> logp_weights = {1, -0.5, 0.25, 2},
                            entropy_weights = {0.5, 1, -2, 0.125};
  const auto loss = [&] {
    double sum = 0;
    for (std::size_t t = 0; t < tokens; ++t) {
      const PlainScores s = plain_scores(hidden[t], head, vocabulary, targets[t], kTemperature);
      sum += logp_weights[t] * s.logp + entropy_weights[t] * s.entropy;
    }
    return sum;
  };
  const at::Tensor h = tensor_of(hidden).requires_grad_(true),
                   w = tensor_of(head).requires_grad_(true);
  const auto scores =
      token_scores(h, w, ids_of(targets), kTemperature, vocabulary, Gradients::kRecorded, {3, 4});
  const auto weights = [](const std::vector<double>& values) { return tensor_of({values})[0]; };
  ((scores.logp * weights(logp_weights)).sum() + (scores.entropy * weights(entropy_weights)).sum())
      .backward();
  const auto compare = [&](Matrix& values, const at::Tensor& gradient, const char* what) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      for (std::size_t j = 0; j < values[i].size(); ++j) {
        const double here = values[i][j];
        values[i][j] = here + kStep;
        const double above = loss();
        values[i][j] = here - kStep;
        const double below = loss();
        values[i][j] = here;
        const auto row = static_cast<std::int64_t>(i), column = static_cast<std::int64_t>(j);
        EXPECT_NEAR(gradient[row][column].item<double>(), (above - below) / (2 * kStep), 2e-5)
            << what << " " << i << " " << j;
      }
    }
  };
  compare(hidden, h.grad(), "hidden");
  compare(head, w.grad(), "head");
  for (std::size_t t = 0; t < tokens; ++t) {
    const PlainScores s = plain_scores(hidden[t], head, vocabulary, targets[t], kTemperature);
    EXPECT_NEAR(scores.logp[static_cast<std::int64_t>(t)].item<double>(), s.logp, 1e-5);
    EXPECT_NEAR(scores.entropy[static_cast<std::int64_t>(t)].item<double>(), s.entropy, 1e-5);
  }
}

// Where one token has it all, entropy does not fall below 0 by rounding and nothing is NaN.
TEST(TokenScores, CertainTokens) {
  const at::Tensor head = tensor_of({{90}, {-90}, {0}}).requires_grad_(true);
  const auto scores = token_scores(at::ones({2, 1}), head, ids_of({0, 1}), 1.0, 3,
                                   Gradients::kRecorded, {.tokens = 1, .vocabulary = 1});
  EXPECT_EQ(scores.logp[0].item<float>(), 0);
  EXPECT_FLOAT_EQ(scores.logp[1].item<float>(), -180);
  EXPECT_GE(scores.entropy[0].item<float>(), 0);
  EXPECT_LT(scores.entropy[0].item<float>(), 1e-30);
  (scores.logp.sum() + scores.entropy.sum()).backward();
  EXPECT_TRUE(head.grad().isfinite().all().item<bool>());
  EXPECT_FLOAT_EQ(head.grad()[1].item<float>(), 1);
}

}  // namespace
}  // namespace antisd::inline ops
