#include "reward/math/real.h"

#include <cmath>
#include <limits>

namespace antisd::inline reward::math {

Real Real::from(const Rational& value) {
  Real result;
  mpf_set_q(result.x_, value.get());
  return result;
}

Real operator+(const Real& a, const Real& b) {
  Real result;
  mpf_add(result.x_, a.x_, b.x_);
  return result;
}

Real operator-(const Real& a, const Real& b) {
  Real result;
  mpf_sub(result.x_, a.x_, b.x_);
  return result;
}

Real operator*(const Real& a, const Real& b) {
  Real result;
  mpf_mul(result.x_, a.x_, b.x_);
  return result;
}

Real operator/(const Real& a, const Real& b) {
  Real result;
  mpf_div(result.x_, a.x_, b.x_);
  return result;
}

Real Real::operator-() const {
  Real result;
  mpf_neg(result.x_, x_);
  return result;
}

double Real::log2() const {
  if (sign() == 0) return -std::numeric_limits<double>::infinity();
  long exponent = 0;
  const double mantissa = mpf_get_d_2exp(&exponent, x_);
  return std::log2(std::fabs(mantissa)) + static_cast<double>(exponent);
}

Real Real::scaled(long log2) const {
  Real result;
  if (log2 >= 0)
    mpf_mul_2exp(result.x_, x_, log2);
  else
    mpf_div_2exp(result.x_, x_, -log2);
  return result;
}

Real Real::square_root() const {
  Real result;
  mpf_sqrt(result.x_, x_);
  return result;
}

Real Real::floor() const {
  Real result;
  mpf_floor(result.x_, x_);
  return result;
}

namespace {

// Machin's formula: pi = 16 arctan(1/5) - 4 arctan(1/239).
Real arctan_inverse(long n) {
  const Real square(static_cast<double>(n) * static_cast<double>(n));
  Real power = Real(1) / Real(static_cast<double>(n)), sum = power;
  for (int k = 3; power.log2() > -kPrecision - 32; k += 2) {
    power = -(power / square);
    sum = sum + power / Real(k);
  }
  return sum;
}

// ln 2 = 2 artanh(1/3).
Real compute_log_2() {
  const Real square(9);
  Real power = Real(2) / Real(3), sum = power;
  for (int k = 3; power.log2() > -kPrecision - 32; k += 2) {
    power = power / square;
    sum = sum + power / Real(k);
  }
  return sum;
}

const Real& log_2() {
  static const Real value = compute_log_2();
  return value;
}

}  // namespace

const Real& real_pi() {
  static const Real value = Real(16) * arctan_inverse(5) - Real(4) * arctan_inverse(239);
  return value;
}

Real real_exp(const Real& x) {
  if (x.sign() == 0) return Real(1);
  if (x.log2() > 29) throw BudgetExceeded("an exponential is too large");
  // x = k ln 2 + r; e^r by its series after eight halvings.
  const long k = std::lround(x.to_double() / 0.6931471805599453);
  const Real r = (x - log_2() * Real(static_cast<double>(k))).scaled(-8);
  Real term(1), sum(1);
  for (int n = 1; n < 80 && term.log2() > -kPrecision - 16; ++n) {
    term = term * r / Real(n);
    sum = sum + term;
  }
  for (int step = 0; step < 8; ++step)
    sum = sum * sum;
  return sum.scaled(k);
}

Real real_log(const Real& x) {
  // x = m 2^k with m near 1; Halley's iteration on e^y = m triples the digits of a double.
  const long k = std::lround(x.log2());
  const Real m = x.scaled(-k);
  Real y(std::log(m.to_double()));
  for (int step = 0; step < 2; ++step) {
    const Real e = real_exp(y);
    y = y + Real(2) * (m - e) / (m + e);
  }
  return y + log_2() * Real(static_cast<double>(k));
}

void real_sin_cos(const Real& x, Real& sine, Real& cosine) {
  if (x.log2() > 60) throw BudgetExceeded("an angle is too large");
  const Real turn = real_pi() + real_pi();
  const Real turns = (x / turn + Real(0.5)).floor();
  const Real r = (x - turns * turn).scaled(-8);
  const Real square = r * r;
  Real s = r, c(1), term = r;
  for (int n = 1; n < 80; ++n) {  // terms r^(n+1) / (n+1)! of sine and r^n / n! of cosine alternate
    const double place = 2.0 * n;
    term = -(term * square) / Real(place * (place + 1));
    s = s + term;
    if (term.log2() < -kPrecision - 16) break;
  }
  // 1 - cos r = 2 sin^2(r/2) would need a second series; doubling uses v = 1 - cos instead.
  Real v = square.scaled(-1), cosine_term = v;
  for (int n = 2; n < 80; ++n) {
    const double place = 2.0 * n;
    cosine_term = -(cosine_term * square) / Real(place * (place - 1));
    v = v + cosine_term;
    if (cosine_term.sign() == 0 || cosine_term.log2() < -kPrecision - 16) break;
  }
  for (int step = 0; step < 8; ++step) {
    s = (s * (Real(1) - v)).scaled(1);
    v = (v * (Real(2) - v)).scaled(1);
  }
  c = Real(1) - v;
  sine = s;
  cosine = c;
}

Real real_angle(const Real& x, const Real& y) {
  if (y.sign() == 0) return x.sign() < 0 ? real_pi() : Real(0);
  const Real radius = (x * x + y * y).square_root();
  const Real unit_x = x / radius, unit_y = y / radius;
  Real angle(std::atan2(unit_y.to_double(), unit_x.to_double()));
  for (int step = 0; step < 2; ++step) {
    Real sine, cosine;
    real_sin_cos(angle, sine, cosine);
    const Real d = unit_y * cosine - unit_x * sine;  // sine of the remaining angle
    angle = angle + d + d * d * d / Real(6);
  }
  return angle;
}

}  // namespace antisd::inline reward::math
