#include "reward/math/normal_form.h"

namespace antisd::inline reward::math {
namespace {

constexpr std::size_t kMaxTerms = 200;
constexpr long kMaxExponent = 40;

void append(std::string& key, const Polynomial& p) {
  for (const auto& [monomial, coefficient] : p) {
    key += '+';
    key += coefficient.to_string();
    for (const auto& [atom, exponent] : monomial) {
      key += '*';
      key += std::to_string(atom);
      key += '^';
      key += std::to_string(exponent);
    }
  }
}

}  // namespace

std::optional<NormalForm> Normalizer::normalize(Expression e) {
  try {
    return form(e);
  } catch (const TooLarge&) {
    return std::nullopt;
  }
}

Comparison Normalizer::compare(const NormalForm& a, const NormalForm& b) {
  try {
    const Polynomial left = product(a.above, b.below), right = product(b.above, a.below);
    if (left == right) return Comparison::kEqual;
    return only_variables(left) && only_variables(right) ? Comparison::kDifferent
                                                         : Comparison::kUnknown;
  } catch (const TooLarge&) {
    return Comparison::kUnknown;
  }
}

Comparison Normalizer::compare_zeros(const NormalForm& a, const NormalForm& b) {
  if (a.above.empty() || b.above.empty())
    return a.above == b.above ? Comparison::kEqual : Comparison::kUnknown;
  const Rational factor = a.above.begin()->second / b.above.begin()->second;
  if (a.above.size() != b.above.size()) return Comparison::kUnknown;
  for (auto x = a.above.begin(), y = b.above.begin(); x != a.above.end(); ++x, ++y)
    if (x->first != y->first || !(x->second == y->second * factor)) return Comparison::kUnknown;
  return Comparison::kEqual;
}

bool Normalizer::only_variables(const Polynomial& p) const {
  for (const auto& [monomial, coefficient] : p)
    for (const auto& [atom, exponent] : monomial)
      if (!atoms_[atom].variable) return false;
  return true;
}

NormalForm Normalizer::constant(Rational value) const {
  NormalForm f;
  if (value.sign() != 0) f.above[{}] = std::move(value);
  f.below[{}] = Rational(1);
  return f;
}

NormalForm Normalizer::atom(const std::string& key, Atom kind) {
  const auto [found, fresh] = numbers_.emplace(key, static_cast<int>(atoms_.size()));
  if (fresh) atoms_.push_back(kind);
  NormalForm f = constant(1);
  f.above.clear();
  f.above[{{found->second, 1}}] = Rational(1);
  return f;
}

Polynomial Normalizer::sum(const Polynomial& a, const Polynomial& b) {
  Polynomial total = a;
  for (const auto& [monomial, coefficient] : b) {
    budget_.spend();
    Rational& here = total[monomial];
    here = here + coefficient;
    if (here.sign() == 0) total.erase(monomial);
  }
  if (total.size() > kMaxTerms) throw TooLarge{};
  return total;
}

Polynomial Normalizer::product(const Polynomial& a, const Polynomial& b) {
  if (a.size() * b.size() > 20 * kMaxTerms) throw TooLarge{};
  Polynomial total;
  for (const auto& [left, left_coefficient] : a)
    for (const auto& [right, right_coefficient] : b) {
      budget_.spend();
      Monomial merged;
      Rational coefficient = left_coefficient * right_coefficient;
      auto x = left.begin();
      auto y = right.begin();
      while (x != left.end() || y != right.end()) {
        std::pair<int, int> power;
        if (y == right.end() || (x != left.end() && x->first < y->first))
          power = *x++;
        else if (x == left.end() || y->first < x->first)
          power = *y++;
        else
          power = {x->first, x->second + y->second}, ++x, ++y;
        const Atom& kind = atoms_[power.first];
        if (kind.degree > 0 && power.second >= kind.degree) {
          coefficient = coefficient * Rational(kind.radicand).power(power.second / kind.degree);
          power.second %= kind.degree;
        }
        if (power.second > 1000) throw TooLarge{};
        if (power.second != 0) merged.push_back(power);
      }
      Rational& here = total[merged];
      here = here + coefficient;
      if (here.sign() == 0) total.erase(merged);
    }
  if (total.size() > kMaxTerms) throw TooLarge{};
  return total;
}

NormalForm Normalizer::add(const NormalForm& a, const NormalForm& b) {
  if (a.below == b.below) return {sum(a.above, b.above), a.below};
  return {sum(product(a.above, b.below), product(b.above, a.below)), product(a.below, b.below)};
}

NormalForm Normalizer::multiply(const NormalForm& a, const NormalForm& b) {
  return {product(a.above, b.above), product(a.below, b.below)};
}

NormalForm Normalizer::divide(const NormalForm& a, const NormalForm& b) {
  if (b.above.empty()) throw TooLarge{};  // a division by zero has no form
  return {product(a.above, b.below), product(a.below, b.above)};
}

// The root of a positive integer as a product of roots of its primes, so that sqrt(6) is sqrt(2)
// sqrt(3); a factor too large to split is itself an atom.
NormalForm Normalizer::root(long radicand, int degree) {
  NormalForm result = constant(1);
  const auto take = [&](long base, int times) {
    result = multiply(result, constant(Rational(base).power(times / degree)));
    const std::string name = std::to_string(base) + "^1/" + std::to_string(degree);
    for (int k = 0; k < times % degree; ++k)
      result = multiply(result, atom(name, {false, base, degree}));
  };
  for (long prime = 2; prime <= 1000 && prime * prime <= radicand; ++prime) {
    int times = 0;
    for (; radicand % prime == 0; radicand /= prime)
      ++times;
    if (times > 0) take(prime, times);
  }
  if (radicand > 1) take(radicand, 1);
  return result;
}

NormalForm Normalizer::power(Expression e) {
  const std::optional<Rational> exponent = exact_value(e->args[1], budget_);
  if (!exponent) return opaque(e);
  const std::optional<long> above = exponent->numerator().to_long(),
                            below = exponent->denominator().to_long();
  if (!above || !below || std::abs(*above) > kMaxExponent || *below > 12) return opaque(e);
  NormalForm base;
  if (*below == 1) {
    base = form(e->args[0]);
  } else {
    const std::optional<Rational> value = exact_value(e->args[0], budget_);
    const auto numerator = value ? value->numerator().to_long() : std::nullopt;
    const auto denominator = value ? value->denominator().to_long() : std::nullopt;
    if (!numerator || !denominator || *numerator <= 0 || *numerator > 1'000'000'000'000 ||
        *denominator > 1'000'000'000'000)
      return opaque(e);
    // (p/q)^(1/k) = p^(1/k) / q^(1/k)
    const int degree = static_cast<int>(*below);
    base = divide(root(*numerator, degree), root(*denominator, degree));
  }
  NormalForm result = constant(1);
  for (long k = 0; k < std::abs(*above); ++k)
    result = multiply(result, base);
  return *above < 0 ? divide(constant(1), result) : result;
}

NormalForm Normalizer::opaque(Expression e) {
  std::string name = std::to_string(static_cast<int>(e->op)) + e->name + "(";
  for (Expression arg : e->args) {
    name += key(form(arg));
    name += ';';
    if (name.size() > 2000) throw TooLarge{};
  }
  return atom(name, {});
}

std::string Normalizer::key(const NormalForm& f) const {
  std::string text;
  append(text, f.above);
  text += '/';
  append(text, f.below);
  return text;
}

NormalForm Normalizer::form(Expression e) {
  budget_.spend(2);
  switch (e->op) {
    case Op::kNumber:
      if (e->value.bits() > 2000) throw TooLarge{};
      return constant(e->value);
    case Op::kSymbol:
      if (e->name == "i") return atom("i", {false, -1, 2});
      return atom(e->name, {e->name != "pi" && e->name != "e" && e->name != "infinity"});
    case Op::kNegate:
      return multiply(constant(-1), form(e->args[0]));
    case Op::kAdd:
    case Op::kMultiply: {
      NormalForm total = form(e->args[0]);
      for (std::size_t k = 1; k < e->args.size(); ++k)
        total =
            e->op == Op::kAdd ? add(total, form(e->args[k])) : multiply(total, form(e->args[k]));
      return total;
    }
    case Op::kDivide:
      return divide(form(e->args[0]), form(e->args[1]));
    case Op::kPercent:
      return divide(form(e->args[0]), constant(100));
    case Op::kPower:
      return power(e);
    case Op::kUnit:
      return form(e->args[0]);
    case Op::kCall:
    case Op::kWord:
      return opaque(e);
    default:
      throw TooLarge{};  // degrees depend on context; collections have no form
  }
}

}  // namespace antisd::inline reward::math
