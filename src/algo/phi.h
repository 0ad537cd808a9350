// The form of AntiSD's term: the derivative of the Jensen-Shannon divergence between student and
// teacher, as a function of u = t - s.
#pragma once

namespace antisd::inline algo {

// ln(1 + e^u), without overflow.
double softplus(double u);

// phi(u) = (softplus(u) - ln 2) / 2: phi(0) = 0, slope 1/4 there, never below -ln(2)/2, linear for
// large u.
double phi(double u);

}  // namespace antisd::inline algo
