// Numbers of kPrecision bits with elementary functions, for numeric tests of equality.
//
// A Complex has a bound on its absolute error, to distinguish "equal as far as can be seen" from
// "this computation lost its digits": sqrt(8) - 2 sqrt(2) is zero within 2^-250, and a difference
// of 10^-40 between two well-conditioned values is a difference.
#pragma once

#include <string>

#include <gmp.h>

#include "reward/math/number.h"

namespace antisd::inline reward::math {

inline constexpr int kPrecision = 320;       // bits of the mantissa
inline constexpr double kRounding = -300;    // log2 of the relative error of one operation
inline constexpr double kMaxLog2 = 1 << 30;  // larger magnitudes are rejected

// mpf_t with value semantics.
class Real {
 public:
  Real() { mpf_init2(x_, kPrecision); }
  Real(double value) : Real() { mpf_set_d(x_, value); }  // NOLINT: numbers read as numbers
  Real(const Real& other) : Real() { mpf_set(x_, other.x_); }
  Real(Real&& other) noexcept : Real() { mpf_swap(x_, other.x_); }
  Real& operator=(const Real& other) { return mpf_set(x_, other.x_), *this; }
  Real& operator=(Real&& other) noexcept { return mpf_swap(x_, other.x_), *this; }
  ~Real() { mpf_clear(x_); }
  static Real from(const Rational& value);

  friend Real operator+(const Real& a, const Real& b);
  friend Real operator-(const Real& a, const Real& b);
  friend Real operator*(const Real& a, const Real& b);
  friend Real operator/(const Real& a, const Real& b);  // b is not zero
  Real operator-() const;
  friend bool operator<(const Real& a, const Real& b) { return mpf_cmp(a.x_, b.x_) < 0; }

  int sign() const { return mpf_sgn(x_); }
  double log2() const;           // of the magnitude; -infinity for zero
  Real scaled(long log2) const;  // this * 2^log2
  Real absolute() const { return sign() < 0 ? -*this : *this; }
  Real square_root() const;  // not negative
  Real floor() const;
  double to_double() const { return mpf_get_d(x_); }
  mpf_srcptr get() const { return x_; }

 private:
  mpf_t x_;
};

const Real& real_pi();
Real real_exp(const Real& x);
Real real_log(const Real& x);  // x > 0
void real_sin_cos(const Real& x, Real& sine, Real& cosine);
Real real_angle(const Real& x, const Real& y);  // of the point (x, y), in (-pi, pi]

struct Complex {
  Real re, im;
  double error = kRounding;  // log2 of the absolute error

  static Complex from(const Rational& value);
  static Complex from_real(Real value);
  double log2() const;  // of the magnitude
  bool is_real() const { return im.sign() == 0 || im.log2() <= error + 2; }
  bool is_zero() const { return log2() <= error + 2; }
};

// Each throws Undefined if the value does not exist, BudgetExceeded if it is too large.
class Undefined : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

Complex operator+(const Complex& a, const Complex& b);
Complex operator-(const Complex& a, const Complex& b);
Complex operator*(const Complex& a, const Complex& b);
Complex operator/(const Complex& a, const Complex& b);
Complex complex_exp(const Complex& z);
Complex complex_log(const Complex& z);  // principal branch
Complex complex_sqrt(const Complex& z);
Complex complex_power(const Complex& base, const Complex& exponent);
Complex complex_integer_power(const Complex& base, long exponent);
void complex_sin_cos(const Complex& z, Complex& sine, Complex& cosine);
Complex complex_asin(const Complex& z);
Complex complex_atan(const Complex& z);

}  // namespace antisd::inline reward::math
