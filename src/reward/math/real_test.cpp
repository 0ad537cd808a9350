// The functions against digits published in tables, and against identities at random points.
#include "reward/math/real.h"

#include <random>

#include <gtest/gtest.h>

#include "reward/math/budget.h"

namespace antisd::inline reward::math {
namespace {

// Sixty decimals each, from tables.
void expect_digits(const Real& value, const char* digits) {
  mpf_t expected;
  mpf_init2(expected, kPrecision);
  mpf_set_str(expected, digits, 10);
  mpf_sub(expected, expected, value.get());
  EXPECT_LT(std::fabs(mpf_get_d(expected)), 1e-59) << digits;
  mpf_clear(expected);
}

double gap(const Complex& a, const Complex& b) {
  return (a - b).log2();
}

TEST(Real, KnownConstants) {
  expect_digits(real_pi(), "3.141592653589793238462643383279502884197169399375105820974944592");
  expect_digits(real_exp(Real(1)),
                "2.718281828459045235360287471352662497757247093699959574966967628");
  expect_digits(real_log(Real(2)),
                "0.693147180559945309417232121458176568075500134360255254120680009");
  expect_digits(real_log(Real(10)),
                "2.302585092994045684017991454684364207601101488628772976033327901");
  Real sine, cosine;
  real_sin_cos(Real(1), sine, cosine);
  expect_digits(sine, "0.841470984807896506652502321630298999622563060798371065672751710");
  expect_digits(cosine, "0.540302305868139717400936607442976603732310420617922227670097255");
  expect_digits(real_angle(Real(1), Real(1)),
                "0.785398163397448309615660845819875721049292349843776455243736148");
  expect_digits(Real(2).square_root(),
                "1.414213562373095048801688724209698078569671875376948073176679738");
}

TEST(Complex, IdentitiesHoldWithinTheErrorBound) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> any(-20, 20);
  const Complex one = Complex::from(1);
  for (int round = 0; round < 200; ++round) {
    Complex z = Complex::from_real(Real(any(random)));
    if (round % 2 == 1) z.im = Real(any(random));
    Complex sine, cosine;
    complex_sin_cos(z, sine, cosine);
    const Complex pythagoras = sine * sine + cosine * cosine - one;
    EXPECT_LE(pythagoras.log2(), pythagoras.error + 3);
    const Complex back = complex_exp(complex_log(z)) - z;
    EXPECT_LE(back.log2(), back.error + 3);
    const Complex root = complex_sqrt(z), square = root * root - z;
    EXPECT_LE(square.log2(), square.error + 3);
    EXPECT_LT(square.error, -250);  // the bound itself is tight
    Complex arc_sine, arc_cosine;
    complex_sin_cos(complex_asin(z), arc_sine, arc_cosine);
    EXPECT_LT(gap(arc_sine, z), -240);
    complex_sin_cos(complex_atan(z), sine, cosine);
    EXPECT_LT(gap(sine / cosine, z), -240);
    EXPECT_LT(gap(complex_integer_power(z, -3) * z * z * z, one), -280);
  }
}

TEST(Complex, RefusesWhatDoesNotExistOrIsTooLarge) {
  const Complex zero = Complex::from(0), one = Complex::from(1);
  EXPECT_THROW(one / zero, Undefined);
  EXPECT_THROW(complex_log(zero), Undefined);
  EXPECT_THROW(complex_power(zero, zero - one), Undefined);
  EXPECT_THROW(complex_exp(complex_exp(Complex::from(1000))), BudgetExceeded);
}

}  // namespace
}  // namespace antisd::inline reward::math
