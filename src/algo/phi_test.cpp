// phi(u) = (softplus(u) - ln 2) / 2: published values, slope 1/4 at 0, and that it is the
// derivative of the Jensen-Shannon divergence.
#include "algo/phi.h"

#include <array>
#include <cmath>

#include <gmock/gmock.h>

namespace antisd::inline algo {
namespace {

TEST(Phi, HasThePublishedValues) {
  EXPECT_EQ(phi(0), 0);
  EXPECT_NEAR(phi(1), .310057253, 1e-9);
  EXPECT_NEAR(phi(-1), -.189942747, 1e-9);
  EXPECT_NEAR(phi(5), 2.156784084, 1e-9);
  EXPECT_NEAR(-phi(-20), .346573589, 1e-9);
  EXPECT_NEAR(phi(1000), 499.653426, 1e-6);
  EXPECT_NEAR(phi(-1000), -.346573590, 1e-9);
}

TEST(Phi, HasSlopeAQuarterAtZero) {
  EXPECT_NEAR((phi(1e-3) - phi(-1e-3)) / 2e-3, .25, 1e-7);
}

using Distribution = std::array<double, 3>;
constexpr Distribution kStudentP = {.5, .3, .2}, kTeacherP = {.2, .3, .5};

Distribution softmax(const Distribution& logits) {
  Distribution p;
  double sum = 0;
  for (std::size_t v = 0; v < p.size(); ++v)
    sum += p[v] = std::exp(logits[v]);
  for (double& value : p)
    value /= sum;
  return p;
}

double kl(const Distribution& p, const Distribution& q) {
  double sum = 0;
  for (std::size_t v = 0; v < p.size(); ++v)
    sum += p[v] * std::log(p[v] / q[v]);
  return sum;
}

double jsd(const Distribution& p, const Distribution& q) {
  Distribution middle;
  for (std::size_t v = 0; v < p.size(); ++v)
    middle[v] = (p[v] + q[v]) / 2;
  return (kl(p, middle) + kl(q, middle)) / 2;
}

template <typename Divergence>
Distribution gradient_in_logits(const Divergence& divergence) {
  Distribution logits, gradient;
  for (std::size_t v = 0; v < logits.size(); ++v)
    logits[v] = std::log(kStudentP[v]);
  for (std::size_t v = 0; v < logits.size(); ++v) {
    Distribution up = logits, down = logits;
    up[v] += 1e-5;
    down[v] -= 1e-5;
    gradient[v] =
        (divergence(softmax(up), kTeacherP) - divergence(softmax(down), kTeacherP)) / 2e-5;
  }
  return gradient;
}

// sum_v pi_S(v) weight(u_v) grad log pi_S(v): what a policy gradient with that advantage does.
template <typename Weight>
Distribution policy_gradient(const Weight& weight) {
  Distribution gradient = {};
  for (std::size_t v = 0; v < 3; ++v) {
    const double u = std::log(kTeacherP[v] / kStudentP[v]);
    for (std::size_t w = 0; w < 3; ++w)
      gradient[w] += kStudentP[v] * weight(u) * ((v == w ? 1 : 0) - kStudentP[w]);
  }
  return gradient;
}

TEST(Phi, AscendsTheJensenShannonDivergence) {
  EXPECT_NEAR(jsd(kStudentP, kTeacherP), .066414314, 1e-9);
  const Distribution expected = {.072565157, -.009962147, -.062603010};
  const Distribution by_differences = gradient_in_logits(jsd);
  const Distribution by_phi = policy_gradient([](double u) { return -phi(u); });
  for (std::size_t v = 0; v < 3; ++v) {
    EXPECT_NEAR(by_differences[v], expected[v], 1e-9);
    EXPECT_NEAR(by_phi[v], expected[v], 1e-9);
  }
  double mean = 0;
  for (std::size_t v = 0; v < 3; ++v)
    mean -= kStudentP[v] * phi(std::log(kTeacherP[v] / kStudentP[v]));
  EXPECT_NEAR(mean, .033207157, 1e-9);
}

TEST(Phi, MinusUAscendsTheReverseKl) {
  const Distribution expected = {.320701756, -.082466166, -.238235590};
  const Distribution by_differences = gradient_in_logits(kl);
  const Distribution by_u = policy_gradient([](double u) { return -u; });
  for (std::size_t v = 0; v < 3; ++v) {
    EXPECT_NEAR(by_differences[v], expected[v], 1e-8);
    EXPECT_NEAR(by_u[v], expected[v], 1e-9);
  }
}

}  // namespace
}  // namespace antisd::inline algo
