#include "report/inspect/analysis.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "report/inspect/token_text.h"

namespace antisd::inline report {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kAll = 0;  // the only key of all_

Json to_json(const ClusteredMean& mean) {
  return {{"count", mean.count},
          {"mean", rounded(mean.mean)},
          {"low", rounded(mean.low)},
          {"high", rounded(mean.high)},
          {"clusters", mean.clusters}};
}

Json with(Json head, const ClusteredMean& mean) {
  head.update(to_json(mean));
  return head;
}

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : kUnknown;
}

// Linear interpolation, as in numpy.
double quantile(const std::vector<float>& sorted, double q) {
  if (sorted.empty()) return kUnknown;
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = at - static_cast<double>(below);
  return sorted[below] * (1 - part) + sorted[above] * part;
}

}  // namespace

Analysis::Analysis(WordList words, Tokenizer tokenizer)
    : words_(std::move(words)),
      tokenizer_(std::move(tokenizer)),
      negative_by_kind_(words_.kinds().size()) {}

// Problems are the clusters; with only one problem, its responses are.
std::int64_t Analysis::cluster_of(const std::string& problem) {
  const auto [at, is_new] = problems_.try_emplace(problem, std::ssize(problems_));
  if (problems_.size() == 1) return responses_;
  if (is_new && problems_.size() == 2) {
    for (ClusteredMeans* means :
         {&all_, &by_token_, &by_kind_, &by_position_, &by_relative_position_})
      means->merge_clusters();
  }
  return at->second;
}

void Analysis::add(const Inspection& inspection) {
  const std::int64_t cluster = cluster_of(inspection.id);
  ++responses_;
  if (!inspection.source.empty()) ++sources_[inspection.source];
  outcomes_.truncated += inspection.response.truncated();
  double sum = 0;
  const std::vector<std::uint8_t> kinds = kinds_of(inspection);
  for (std::size_t i = 0; i < inspection.u.size(); ++i) {
    if (!std::isfinite(inspection.u[i])) {
      ++not_finite_;
      continue;
    }
    sum += inspection.u[i];
    add_token(inspection, i, kinds[i], cluster);
  }
  outcomes_.sum += sum;
  if (!inspection.response.verdict.reward) {
    ++outcomes_.ungraded;
  } else if (inspection.response.verdict.correct()) {
    ++outcomes_.right;
    outcomes_.sum_right += sum;
  } else {
    ++outcomes_.wrong;
    outcomes_.sum_wrong += sum;
  }
}

void Analysis::add_token(const Inspection& inspection, std::size_t i, std::uint8_t kind,
                         std::int64_t cluster) {
  const double u = inspection.u[i];
  const std::int64_t id = inspection.response.ids[i];
  u_.push_back(static_cast<float>(u));
  all_.add(kAll, cluster, u);
  by_token_.add(id, cluster, u);
  ++kinds_of_tokens_[kind_key(id, kind)];
  by_kind_.add(kind, cluster, u);
  negative_by_kind_[kind] += u < 0;
  by_position_.add(std::bit_width(i), cluster, u);
  by_relative_position_.add(static_cast<std::int64_t>(i * kRelativeBins / inspection.u.size()),
                            cluster, u);

  const auto bin = [](float logp) {
    return std::clamp(static_cast<int>(std::exp(logp) * kDensityBins), 0, kDensityBins - 1);
  };
  Cell& cell =
      density_[static_cast<std::size_t>(bin(inspection.response.student.logp[i]) * kDensityBins +
                                        bin(inspection.response.teacher.logp[i]))];
  ++cell.count;
  cell.sum += u;

  const double term = inspection.term[i], advantage = inspection.advantage[i];
  if (!std::isfinite(term) || !std::isfinite(advantage)) return;
  const double of_group = advantage - term;
  ++term_.tokens;
  term_.term += std::abs(term);
  term_.group_advantage += std::abs(of_group);
  term_.alone += of_group == 0;
  term_.flipped += of_group * advantage < 0;
}

Json Analysis::summary(const SummaryOptions& options) const {
  Json sources = Json::object();
  for (const auto& [source, count] : sources_)
    sources[source] = count;
  const auto mean_sum = [](double sum, std::int64_t count) {
    return rounded(count > 0 ? sum / static_cast<double>(count) : kUnknown);
  };
  return {{"problems", problems_.size()},
          {"responses", responses_},
          {"right", outcomes_.right},
          {"wrong", outcomes_.wrong},
          {"ungraded", outcomes_.ungraded},
          {"truncated", outcomes_.truncated},
          {"tokens", u_.size()},
          {"tokens_not_finite", not_finite_},
          {"clusters", problems_.size() > 1 ? "problems" : "responses"},
          {"sources", sources},
          {"u", distribution()},
          {"histogram", histogram()},
          {"kinds", kinds()},
          {"highest", top_tokens(options, true)},
          {"lowest", top_tokens(options, false)},
          {"position", positions()},
          {"relative_position", relative_positions()},
          {"density", density()},
          {"sum_u",
           {{"mean", mean_sum(outcomes_.sum, responses_)},
            {"right", mean_sum(outcomes_.sum_right, outcomes_.right)},
            {"wrong", mean_sum(outcomes_.sum_wrong, outcomes_.wrong)}}},
          {"term", term()}};
}

Json Analysis::distribution() const {
  std::vector<float> sorted = u_;
  std::sort(sorted.begin(), sorted.end());
  Json quantiles = Json::array(), tails = Json::array();
  for (const double q : {0.001, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999})
    quantiles.push_back({{"q", q}, {"u", rounded(quantile(sorted, q))}});
  for (const float limit : {1.0f, 2.0f, 5.0f, 10.0f, 20.0f}) {
    const auto below = std::upper_bound(sorted.begin(), sorted.end(), -limit) - sorted.begin();
    const auto above = sorted.end() - std::lower_bound(sorted.begin(), sorted.end(), limit);
    tails.push_back({{"limit", limit},
                     {"below", rounded(share(below, std::ssize(sorted)))},
                     {"above", rounded(share(above, std::ssize(sorted)))}});
  }
  const ClusteredMean mean = all_.of(kAll);
  double squares = 0;
  for (const double u : sorted)
    squares += (u - mean.mean) * (u - mean.mean);
  const auto negative = std::lower_bound(sorted.begin(), sorted.end(), 0.0f) - sorted.begin();
  Json json = to_json(mean);
  json["deviation"] = rounded(std::sqrt(squares / static_cast<double>(sorted.size())));
  json["min"] = rounded(sorted.empty() ? kUnknown : sorted.front());
  json["max"] = rounded(sorted.empty() ? kUnknown : sorted.back());
  json["negative"] = rounded(share(negative, std::ssize(sorted)));
  json["quantiles"] = quantiles;
  json["tails"] = tails;
  return json;
}

Json Analysis::histogram() const {
  std::vector<std::int64_t> counts(kHistogramBins);
  std::int64_t below = 0, above = 0;
  constexpr double low = -kHistogramWidth * kHistogramBins / 2;
  for (const double u : u_) {
    const double bin = std::floor((u - low) / kHistogramWidth);
    if (bin < 0) {
      ++below;
    } else if (bin >= kHistogramBins) {
      ++above;
    } else {
      ++counts[static_cast<std::size_t>(bin)];
    }
  }
  return {{"low", low},
          {"width", kHistogramWidth},
          {"counts", counts},
          {"below", below},
          {"above", above}};
}

Json Analysis::kinds() const {
  Json list = Json::array();
  for (std::size_t k = 0; k < words_.kinds().size(); ++k) {
    const ClusteredMean mean = by_kind_.of(static_cast<std::int64_t>(k));
    Json row = with({{"kind", words_.kinds()[k]}}, mean);
    row["share"] = rounded(share(mean.count, std::ssize(u_)));
    row["negative"] = rounded(share(negative_by_kind_[k], mean.count));
    row["sum"] = rounded(mean.count > 0 ? mean.mean * static_cast<double>(mean.count) : 0);
    list.push_back(std::move(row));
  }
  return list;
}

const std::string& Analysis::usual_kind(std::int64_t id) const {
  std::size_t usual = words_.kinds().size() - 1;
  std::int64_t most = 0;
  for (std::size_t k = 0; k < words_.kinds().size(); ++k) {
    const auto at = kinds_of_tokens_.find(kind_key(id, static_cast<int>(k)));
    if (at == kinds_of_tokens_.end() || at->second <= most) continue;
    most = at->second;
    usual = k;
  }
  return words_.kinds()[usual];
}

Json Analysis::top_tokens(const SummaryOptions& options, bool highest) const {
  const std::int64_t least =
      options.min_count > 0 ? options.min_count : (u_.size() >= 1000 ? 5 : 1);
  std::vector<std::pair<double, std::int64_t>> order;  // what sorts first, id
  for (const std::int64_t id : by_token_.keys()) {
    const ClusteredMean mean = by_token_.of(id);
    if (mean.count >= least) order.emplace_back(highest ? -mean.mean : mean.mean, id);
  }
  const std::size_t count = std::min(order.size(), static_cast<std::size_t>(options.top));
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end());
  Json list = Json::array();
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t id = order[i].second;
    list.push_back(with({{"token", token_name(tokenizer_, static_cast<TokenId>(id))},
                         {"id", id},
                         {"kind", usual_kind(id)}},
                        by_token_.of(id)));
  }
  return list;
}

Json Analysis::positions() const {
  Json list = Json::array();
  for (const std::int64_t bin : by_position_.keys()) {
    const std::int64_t from = bin == 0 ? 0 : std::int64_t{1} << (bin - 1);
    list.push_back(with({{"from", from}, {"to", std::int64_t{1} << bin}}, by_position_.of(bin)));
  }
  return list;
}

Json Analysis::relative_positions() const {
  Json list = Json::array();
  for (const std::int64_t bin : by_relative_position_.keys()) {
    const double from = static_cast<double>(bin) / kRelativeBins;
    list.push_back(with({{"from", rounded(from)}, {"to", rounded(from + 1.0 / kRelativeBins)}},
                        by_relative_position_.of(bin)));
  }
  return list;
}

Json Analysis::density() const {
  Json cells = Json::array();
  for (int s = 0; s < kDensityBins; ++s) {
    for (int t = 0; t < kDensityBins; ++t) {
      const Cell& cell = density_[static_cast<std::size_t>(s * kDensityBins + t)];
      if (cell.count == 0) continue;
      cells.push_back({{"s", s},
                       {"t", t},
                       {"count", cell.count},
                       {"mean", rounded(cell.sum / static_cast<double>(cell.count))}});
    }
  }
  return {{"bins", kDensityBins}, {"cells", cells}};
}

Json Analysis::term() const {
  const auto mean = [&](double sum) {
    return rounded(term_.tokens > 0 ? sum / static_cast<double>(term_.tokens) : kUnknown);
  };
  const double ratio = term_.group_advantage > 0 ? term_.term / term_.group_advantage : kUnknown;
  return {{"tokens", term_.tokens},
          {"mean_size", mean(term_.term)},
          {"group_advantage_mean_size", mean(term_.group_advantage)},
          {"ratio", rounded(ratio)},
          {"flipped", rounded(share(term_.flipped, term_.tokens - term_.alone))},
          {"alone", rounded(share(term_.alone, term_.tokens))}};
}

}  // namespace antisd::inline report
