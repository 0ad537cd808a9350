// A symbolic normal form: a quotient of polynomials with rational coefficients over atoms. Atoms
// are variables, roots of primes, the imaginary unit, pi, e, and whatever is not evaluated (a call,
// a power with a symbolic exponent), by name.
//
//   (x+1)(x-1) and x^2-1, sqrt(8) and 2 sqrt(2), 1/(1+i) and (1-i)/2 have equal forms.
//
// Equal forms prove equality. Different forms prove a difference only if all atoms are variables;
// sin^2 x + cos^2 x and 1 are left to numeric testing.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reward/math/budget.h"
#include "reward/math/evaluate.h"
#include "reward/math/expression.h"

namespace antisd::inline reward::math {

using Monomial = std::vector<std::pair<int, int>>;  // atom and its exponent, sorted by atom
using Polynomial = std::map<Monomial, Rational>;    // no zero coefficients

struct NormalForm {
  Polynomial above, below;
};

// Atoms by number; forms can be compared only if the same Normalizer made them.
class Normalizer {
 public:
  explicit Normalizer(Budget& budget) : budget_(budget) {}

  // Nothing if the form would be too large or a denominator is zero.
  std::optional<NormalForm> normalize(Expression e);

  // Whether two forms are equal; kUnknown if they differ but their atoms may be dependent.
  Comparison compare(const NormalForm& a, const NormalForm& b);

  // Whether the forms have the same zeros: numerators equal up to a constant factor.
  Comparison compare_zeros(const NormalForm& a, const NormalForm& b);

 private:
  struct Atom {
    bool variable = false;
    long radicand = 0;  // atom^degree = radicand, if degree > 0
    int degree = 0;
  };
  struct TooLarge {};

  NormalForm form(Expression e);
  NormalForm power(Expression e);
  NormalForm root(long radicand, int degree);
  NormalForm atom(const std::string& key, Atom kind);
  NormalForm opaque(Expression e);
  NormalForm constant(Rational value) const;
  NormalForm add(const NormalForm& a, const NormalForm& b);
  NormalForm multiply(const NormalForm& a, const NormalForm& b);
  NormalForm divide(const NormalForm& a, const NormalForm& b);
  Polynomial sum(const Polynomial& a, const Polynomial& b);
  Polynomial product(const Polynomial& a, const Polynomial& b);
  bool only_variables(const Polynomial& p) const;
  std::string key(const NormalForm& f) const;

  Budget& budget_;
  std::map<std::string, int> numbers_;
  std::vector<Atom> atoms_;
};

}  // namespace antisd::inline reward::math
