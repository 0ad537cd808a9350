#include "reward/math/number.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace antisd::inline reward::math {

Rational& Rational::operator=(const Rational& other) {
  mpq_set(q_, other.q_);
  return *this;
}

Rational& Rational::operator=(Rational&& other) noexcept {
  mpq_swap(q_, other.q_);
  return *this;
}

std::optional<Rational> Rational::parse_integer(std::string_view digits, int base) {
  // Four bits per digit is a bound for bases up to 16; larger bases are short in practice.
  if (digits.empty() || digits.size() > kMaxNumberBits / 4) {
    if (digits.empty()) return std::nullopt;
    throw BudgetExceeded("a number has too many digits");
  }
  Rational result;
  const std::string text(digits);
  if (mpz_set_str(mpq_numref(result.q_), text.c_str(), base) != 0) return std::nullopt;
  return result;
}

std::optional<Rational> Rational::parse_decimal(std::string_view text) {
  long exponent = 0;
  if (const std::size_t e = text.find_first_of("eE"); e != std::string_view::npos) {
    const std::string tail(text.substr(e + 1));
    if (tail.empty()) return std::nullopt;
    if (tail.size() > 8) throw BudgetExceeded("an exponent is too large");
    exponent = std::strtol(tail.c_str(), nullptr, 10);
    text = text.substr(0, e);
  }
  std::string digits;
  digits.reserve(text.size());
  bool after_point = false;
  for (const char c : text) {
    if (c == '.') {
      after_point = true;
      continue;
    }
    digits += c;
    if (after_point) --exponent;
  }
  std::optional<Rational> mantissa = parse_integer(digits);
  if (!mantissa || exponent == 0) return mantissa;
  if (std::abs(exponent) > static_cast<long>(kMaxNumberBits / 4))
    throw BudgetExceeded("an exponent is too large");
  return *mantissa * Rational(10).power(exponent);
}

Rational Rational::factorial(unsigned long n) {
  if (n > 8'000) throw BudgetExceeded("a factorial is too large");
  Rational result;
  mpz_fac_ui(mpq_numref(result.q_), n);
  return result;
}

Rational Rational::binomial(unsigned long n, unsigned long k) {
  if (k > n) return 0;
  k = std::min(k, n - k);
  if (k > 5'000 || static_cast<double>(k) * std::log2(static_cast<double>(n) + 1) > kMaxNumberBits)
    throw BudgetExceeded("a binomial is too large");
  Rational result;
  mpz_bin_uiui(mpq_numref(result.q_), n, k);
  return result;
}

Rational& Rational::checked() {
  if (bits() > kMaxNumberBits) throw BudgetExceeded("a number grows too large");
  return *this;
}

Rational operator+(const Rational& a, const Rational& b) {
  Rational result;
  mpq_add(result.q_, a.q_, b.q_);
  return std::move(result.checked());
}

Rational operator-(const Rational& a, const Rational& b) {
  Rational result;
  mpq_sub(result.q_, a.q_, b.q_);
  return std::move(result.checked());
}

Rational operator*(const Rational& a, const Rational& b) {
  Rational result;
  mpq_mul(result.q_, a.q_, b.q_);
  return std::move(result.checked());
}

Rational operator/(const Rational& a, const Rational& b) {
  Rational result;
  mpq_div(result.q_, a.q_, b.q_);
  return std::move(result.checked());
}

Rational Rational::operator-() const {
  Rational result;
  mpq_neg(result.q_, q_);
  return result;
}

std::optional<long> Rational::to_long() const {
  if (!is_integer() || !mpz_fits_slong_p(mpq_numref(q_))) return std::nullopt;
  return mpz_get_si(mpq_numref(q_));
}

Rational Rational::floor() const {
  Rational result;
  mpz_fdiv_q(mpq_numref(result.q_), mpq_numref(q_), mpq_denref(q_));
  return result;
}

Rational Rational::numerator() const {
  Rational result;
  mpz_set(mpq_numref(result.q_), mpq_numref(q_));
  return result;
}

Rational Rational::denominator() const {
  Rational result;
  mpz_set(mpq_numref(result.q_), mpq_denref(q_));
  return result;
}

Rational Rational::power(long exponent) const {
  const unsigned long size = exponent < 0 ? 0UL - static_cast<unsigned long>(exponent) : exponent;
  const bool unit = mpz_cmpabs_ui(mpq_numref(q_), 1) <= 0 && is_integer();
  if (!unit && static_cast<double>(bits()) * static_cast<double>(size) > 1.5 * kMaxNumberBits)
    throw BudgetExceeded("a power is too large");
  Rational result;
  mpz_pow_ui(mpq_numref(result.q_), mpq_numref(q_), size);
  mpz_pow_ui(mpq_denref(result.q_), mpq_denref(q_), size);
  if (exponent < 0) mpq_inv(result.q_, result.q_);
  return std::move(result.checked());
}

std::optional<Rational> Rational::root(unsigned long degree) const {
  if (degree == 0 || (sign() < 0 && degree % 2 == 0)) return std::nullopt;
  if (bits() > 4096) return std::nullopt;  // left to numeric evaluation
  Rational result;
  if (mpz_root(mpq_numref(result.q_), mpq_numref(q_), degree) == 0) return std::nullopt;
  if (mpz_root(mpq_denref(result.q_), mpq_denref(q_), degree) == 0) return std::nullopt;
  return result;
}

std::size_t Rational::bits() const {
  return std::max(mpz_sizeinbase(mpq_numref(q_), 2), mpz_sizeinbase(mpq_denref(q_), 2));
}

std::string Rational::to_string() const {
  if (bits() > 100'000) throw BudgetExceeded("a number is too large to print");
  std::string text(mpz_sizeinbase(mpq_numref(q_), 10) + mpz_sizeinbase(mpq_denref(q_), 10) + 3,
                   '\0');
  mpq_get_str(text.data(), 10, q_);
  text.resize(text.find('\0'));
  return text;
}

}  // namespace antisd::inline reward::math
