// Exact rational numbers with GMP, limited in size: an operation whose result would not fit in
// kMaxNumberBits throws BudgetExceeded instead of using up memory and time.
//
//   const Rational half = *Rational::parse_decimal("0.5");
//   half * Rational(4) == Rational(2);  // true, exactly
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include <gmp.h>

namespace antisd::inline reward::math {

// The text needs more time, memory or precision than one grade may use. grade_math catches it and
// returns an undecided verdict with this reason.
class BudgetExceeded : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline constexpr std::size_t kMaxNumberBits = 100'000;

class Rational {
 public:
  Rational() { mpq_init(q_); }
  Rational(long value) : Rational() {
    mpq_set_si(q_, value, 1);
  }  // NOLINT: numbers read as numbers
  Rational(const Rational& other) : Rational() { mpq_set(q_, other.q_); }
  Rational(Rational&& other) noexcept : Rational() { mpq_swap(q_, other.q_); }
  Rational& operator=(const Rational& other);
  Rational& operator=(Rational&& other) noexcept;
  ~Rational() { mpq_clear(q_); }

  // Digits of a base from 2 to 36; nothing if the text is not such a number.
  static std::optional<Rational> parse_integer(std::string_view digits, int base = 10);
  // "12", "12.5", ".5", "5.", with an optional exponent "e-3".
  static std::optional<Rational> parse_decimal(std::string_view text);
  static Rational factorial(unsigned long n);
  static Rational binomial(unsigned long n, unsigned long k);

  friend Rational operator+(const Rational& a, const Rational& b);
  friend Rational operator-(const Rational& a, const Rational& b);
  friend Rational operator*(const Rational& a, const Rational& b);
  friend Rational operator/(const Rational& a, const Rational& b);  // b is not zero
  Rational operator-() const;
  friend bool operator==(const Rational& a, const Rational& b) {
    return mpq_equal(a.q_, b.q_) != 0;
  }
  friend bool operator<(const Rational& a, const Rational& b) { return mpq_cmp(a.q_, b.q_) < 0; }

  int sign() const { return mpq_sgn(q_); }
  bool is_integer() const { return mpz_cmp_ui(mpq_denref(q_), 1) == 0; }
  std::optional<long> to_long() const;  // if it is an integer that fits
  Rational floor() const;
  Rational absolute() const { return sign() < 0 ? -*this : *this; }
  Rational numerator() const;
  Rational denominator() const;
  Rational power(long exponent) const;  // not for zero and a negative exponent
  // The root of this degree if it is rational; degree at least 1.
  std::optional<Rational> root(unsigned long degree) const;
  std::size_t bits() const;
  double to_double() const { return mpq_get_d(q_); }
  std::string to_string() const;
  mpq_srcptr get() const { return q_; }

 private:
  Rational& checked();
  mpq_t q_;
};

}  // namespace antisd::inline reward::math
