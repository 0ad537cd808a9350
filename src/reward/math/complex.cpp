// Complex arithmetic with error bounds, based on the real functions of real.cpp. Bounds are
// first-order with a few bits to spare; equality is decided with a far larger margin.
#include <algorithm>
#include <cmath>
#include <limits>

#include "reward/math/real.h"

namespace antisd::inline reward::math {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

double log_add(double a, double b) {
  return std::max(a, b) + 1;
}

// Adds the rounding error of a result of this size to that of its operands.
Complex finish(Complex z, double error) {
  const double size = z.log2();
  if (size > kMaxLog2 || error > kMaxLog2) throw BudgetExceeded("a value is too large");
  if (size < -kMaxLog2 && size != kNone) throw BudgetExceeded("a value is too small");
  z.error = log_add(error, std::max(size, -kMaxLog2) + kRounding);
  return z;
}

Complex times_i(const Complex& z) {
  return {-z.im, z.re, z.error};
}
Complex negated(const Complex& z) {
  return {-z.re, -z.im, z.error};
}

}  // namespace

Complex Complex::from(const Rational& value) {
  return from_real(Real::from(value));
}

Complex Complex::from_real(Real value) {
  Complex z;
  z.re = std::move(value);
  return finish(std::move(z), -kMaxLog2);
}

double Complex::log2() const {
  const double a = re.log2(), b = im.log2();
  if (b == kNone) return a;
  if (a == kNone) return b;
  return std::max(a, b) + 0.5 * std::log2(1 + std::exp2(-2 * std::fabs(a - b)));
}

Complex operator+(const Complex& a, const Complex& b) {
  return finish({a.re + b.re, a.im + b.im}, log_add(a.error, b.error));
}

Complex operator-(const Complex& a, const Complex& b) {
  return finish({a.re - b.re, a.im - b.im}, log_add(a.error, b.error));
}

Complex operator*(const Complex& a, const Complex& b) {
  const double error =
      log_add(std::max(a.log2(), a.error) + b.error, std::max(b.log2(), b.error) + a.error);
  if (a.im.sign() == 0 && b.im.sign() == 0) return finish({a.re * b.re, Real()}, error);
  return finish({a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}, error);
}

Complex operator/(const Complex& a, const Complex& b) {
  if (b.is_zero()) throw Undefined("division by zero");
  const double size = b.log2();
  const double error = log_add(a.error - size, std::max(a.log2(), a.error) + b.error - 2 * size);
  if (a.im.sign() == 0 && b.im.sign() == 0) return finish({a.re / b.re, Real()}, error);
  const Real norm = b.re * b.re + b.im * b.im;
  return finish({(a.re * b.re + a.im * b.im) / norm, (a.im * b.re - a.re * b.im) / norm}, error);
}

Complex complex_exp(const Complex& z) {
  const Real size = real_exp(z.re);
  const double error = size.log2() + z.error;
  if (z.im.sign() == 0) return finish({size, Real()}, error);
  Real sine, cosine;
  real_sin_cos(z.im, sine, cosine);
  return finish({size * cosine, size * sine}, error);
}

Complex complex_log(const Complex& z) {
  if (z.is_zero()) throw Undefined("logarithm of zero");
  const double error = log_add(z.error - z.log2(), kRounding);
  if (z.is_real() && z.re.sign() > 0) return finish({real_log(z.re), Real()}, error);
  const Real square = z.re * z.re + z.im * z.im;
  // An imaginary part within its error of zero counts as zero: the branch above the cut.
  const Real angle = real_angle(z.re, z.is_real() ? Real() : z.im);
  return finish({real_log(square).scaled(-1), angle}, error);
}

Complex complex_sqrt(const Complex& z) {
  if (z.is_zero()) return {Real(), Real(), std::max(z.error, z.log2()) / 2 + 1};
  const double error = z.error - z.log2() / 2;
  if (z.is_real()) {
    const Real root = z.re.absolute().square_root();
    return z.re.sign() > 0 ? finish({root, Real()}, error) : finish({Real(), root}, error);
  }
  const Real size = (z.re * z.re + z.im * z.im).square_root();
  Complex root;
  // The larger part first, the other by division, so that nothing cancels.
  if (z.re.sign() >= 0) {
    root.re = ((size + z.re).scaled(-1)).square_root();
    root.im = z.im / root.re.scaled(1);
  } else {
    const Real part = ((size - z.re).scaled(-1)).square_root();
    root.im = z.im.sign() < 0 ? -part : part;
    root.re = z.im / root.im.scaled(1);
  }
  return finish(std::move(root), error);
}

Complex complex_integer_power(const Complex& base, long exponent) {
  Complex result = Complex::from(1), square = base;
  unsigned long left = exponent < 0 ? 0UL - static_cast<unsigned long>(exponent) : exponent;
  while (left > 0) {
    if (left & 1) result = result * square;
    left >>= 1;
    if (left > 0) square = square * square;
  }
  return exponent < 0 ? Complex::from(1) / result : result;
}

Complex complex_power(const Complex& base, const Complex& exponent) {
  if (base.is_zero()) {
    if (exponent.is_real() && exponent.re.sign() > 0) return {Real(), Real(), kRounding};
    throw Undefined("zero to a power that is not positive");
  }
  return complex_exp(complex_log(base) * exponent);
}

void complex_sin_cos(const Complex& z, Complex& sine, Complex& cosine) {
  if (z.im.sign() == 0) {
    Real s, c;
    real_sin_cos(z.re, s, c);
    const double error = log_add(z.error, std::max(0.0, z.re.log2()) + kRounding);
    sine = finish({s, Real()}, error);
    cosine = finish({c, Real()}, error);
    return;
  }
  const Complex up = complex_exp(times_i(z)), down = complex_exp(negated(times_i(z)));
  const Complex half = Complex::from(Rational(1) / Rational(2));
  cosine = (up + down) * half;
  sine = negated(times_i((up - down) * half));
}

// arcsin z = -i log(i z + sqrt(1 - z^2))
Complex complex_asin(const Complex& z) {
  const Complex one = Complex::from(1);
  return negated(times_i(complex_log(times_i(z) + complex_sqrt(one - z * z))));
}

// arctan z = i/2 (log(1 - i z) - log(1 + i z))
Complex complex_atan(const Complex& z) {
  const Complex one = Complex::from(1), iz = times_i(z);
  return times_i(complex_log(one - iz) - complex_log(one + iz)) *
         Complex::from(Rational(1) / Rational(2));
}

}  // namespace antisd::inline reward::math
