#include "report/inspect/charts.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "report/page/html.h"

namespace antisd::inline report {
namespace {

constexpr std::string_view kChartStyle = R"css(
:root { --raise: #dc2626; --lower: #2563eb; }
@media (prefers-color-scheme: dark) { :root { --raise: #f87171; --lower: #60a5fa; } }
svg { display: block; width: 100%; max-width: 44rem; height: auto; }
svg text { fill: var(--faint); font: 11px system-ui, sans-serif; }
svg .axis { stroke: var(--line); } svg .zero { stroke: var(--faint); stroke-dasharray: 3 3; }
svg .bar { fill: var(--accent); } svg .up { fill: var(--raise); } svg .down { fill: var(--lower); }
svg .whisker { stroke: var(--text); opacity: .6; } svg .run { fill: none; stroke-width: 1.5; }
svg .right { stroke: var(--good); } svg .wrong { stroke: var(--bad); } svg .ungraded { stroke: var(--faint); }
)css";

constexpr double kWidth = 640, kHeight = 250, kLeft = 52, kRight = 12, kTop = 10, kBottom = 36;

double number(const Json& value, double otherwise = 0) {
  return value.is_number() ? value.get<double>() : otherwise;
}

// A plot area with axes: data coordinates -> SVG.
class Plot {
 public:
  Plot(double x_low, double x_high, double y_low, double y_high)
      : x_low_(x_low),
        x_high_(x_high > x_low ? x_high : x_low + 1),
        y_low_(y_low),
        y_high_(y_high > y_low ? y_high : y_low + 1) {}

  double x(double value) const {
    return kLeft + (value - x_low_) / (x_high_ - x_low_) * (kWidth - kLeft - kRight);
  }
  double y(double value) const {
    return kHeight - kBottom - (value - y_low_) / (y_high_ - y_low_) * (kHeight - kTop - kBottom);
  }

  void add(const std::string& svg) { body_ += svg; }
  void bar(double from, double to, double low, double high, std::string_view kind,
           const std::string& title) {
    add(
        fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
                    "height=\"{:.1f}\"><title>{}</title></rect>",
                    kind, x(from) + 0.5, y(high), std::max(0.5, x(to) - x(from) - 1),
                    std::max(0.0, y(low) - y(high)), escape_html(title)));
  }
  void line(double x1, double y1, double x2, double y2, std::string_view kind) {
    add(fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>",
                    kind, x(x1), y(y1), x(x2), y(y2)));
  }
  void x_tick(double at, const std::string& label) {
    add(fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>", x(at),
                    kHeight - kBottom + 14, escape_html(label)));
  }
  void y_tick(double at, const std::string& label) {
    line(x_low_, at, x_high_, at, "axis");
    add(fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>", kLeft - 5,
                    y(at) + 4, escape_html(label)));
  }
  void round_y_ticks() {
    const double span = y_high_ - y_low_;
    const double power = std::pow(10, std::floor(std::log10(span / 4)));
    double step = power;
    for (const double factor : {2.0, 5.0, 10.0}) {
      if (span / step > 6) step = power * factor;
    }
    for (double tick = std::ceil(y_low_ / step); tick * step <= y_high_; ++tick)
      y_tick(tick * step, fmt::format("{:g}", tick * step + 0.0));
  }

  std::string svg(const std::string& x_label, const std::string& name) const {
    return fmt::format(
        "<svg viewBox=\"0 0 {:g} {:g}\" role=\"img\" aria-label=\"{}\">{}<text x=\"{:g}\" "
        "y=\"{:g}\" text-anchor=\"middle\">{}</text></svg>",
        kWidth, kHeight, escape_html(name), body_, (kWidth + kLeft) / 2, kHeight - 4,
        escape_html(x_label));
  }

 private:
  double x_low_, x_high_, y_low_, y_high_;
  std::string body_;
};

std::string mean_title(const Json& row) {
  return fmt::format("{} to {}: mean u {} [{}, {}], {} tokens", row["from"].dump(),
                     row["to"].dump(), row["mean"].dump(), row["low"].dump(), row["high"].dump(),
                     row["count"].dump());
}

}  // namespace

std::string_view chart_style() {
  return kChartStyle;
}

std::string histogram_chart(const Json& histogram) {
  const double low = number(histogram["low"]), width = number(histogram["width"], 1);
  std::vector<double> counts = histogram["counts"].get<std::vector<double>>();
  counts.insert(counts.begin(), number(histogram["below"]));
  counts.push_back(number(histogram["above"]));
  const double first = low - width, most = *std::max_element(counts.begin(), counts.end());
  const auto height = [](double count) { return count > 0 ? 0.3 + std::log10(count) : 0; };
  const double last = first + width * static_cast<double>(counts.size());
  Plot plot(first, last, 0, height(std::max(most, 10.0)) * 1.05);
  for (double power = 0; std::pow(10, power) <= std::max(most, 10.0); ++power)
    plot.y_tick(0.3 + power, fmt::format("{:g}", std::pow(10, power)));
  for (double tick = low; tick <= -low + 1e-9; tick += -low / 4)
    plot.x_tick(tick, fmt::format("{:g}", tick));
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double from = first + width * static_cast<double>(i);
    const std::string range = i == 0 ? fmt::format("below {:g}", low)
                              : i + 1 == counts.size()
                                  ? fmt::format("{:g} or more", from)
                                  : fmt::format("{:g} to {:g}", from, from + width);
    if (counts[i] > 0)
      plot.bar(from, from + width, 0, height(counts[i]), from < 0 ? "down" : "up",
               fmt::format("u {}: {:g} tokens", range, counts[i]));
  }
  return plot.svg("u = t - s (tokens, logarithmic)", "histogram of u");
}

std::string means_chart(const Json& rows, const std::string& axis) {
  double low = -0.1, high = 0.1;
  for (const Json& row : rows) {
    const double mean = number(row["mean"]);
    low = std::min({low, mean, number(row["low"], mean)});
    high = std::max({high, mean, number(row["high"], mean)});
  }
  // The wide interval of a bin with two tokens must not flatten all others.
  double largest = 0.1;
  for (const Json& row : rows)
    largest = std::max(largest, std::abs(number(row["mean"])));
  low = std::max(low, -3 * largest);
  high = std::min(high, 3 * largest);
  Plot plot(0, static_cast<double>(rows.size()), low, high);
  plot.round_y_ticks();
  plot.line(0, 0, static_cast<double>(rows.size()), 0, "zero");
  const std::size_t stride = rows.size() / 10 + 1;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json& row = rows[i];
    const double at = static_cast<double>(i), mean = number(row["mean"]);
    plot.bar(at + 0.15, at + 0.85, std::min(0.0, mean), std::max(0.0, mean),
             mean < 0 ? "down" : "up", mean_title(row));
    if (row["low"].is_number())
      plot.line(at + 0.5, std::max(low, number(row["low"])), at + 0.5,
                std::min(high, number(row["high"])), "whisker");
    if (i % stride == 0) plot.x_tick(at + 0.5, row["from"].dump());
  }
  return plot.svg(axis, "mean u by " + axis);
}

std::string density_chart(const Json& density) {
  const double bins = number(density["bins"], 1);
  double most = 1;
  for (const Json& cell : density["cells"])
    most = std::max(most, number(cell["count"]));
  constexpr double kSide = 360, kMargin = 40;
  const double size = (kSide - kMargin - 8) / bins;
  std::string body;
  for (const Json& cell : density["cells"]) {
    const double s = number(cell["s"]), t = number(cell["t"]), u = number(cell["mean"]);
    const double strength = 0.15 + 0.85 * std::log1p(number(cell["count"])) / std::log1p(most);
    body += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
        "fill-opacity=\"{:.2f}\" "
        "style=\"fill:color-mix(in srgb, var(--{}) {:.0f}%, var(--faint))\"><title>pi_S {:.2f} to "
        "{:.2f}, pi_T {:.2f} to {:.2f}: {} tokens, mean u {}</title></rect>",
        kMargin + s * size, kSide - kMargin - (t + 1) * size, size, size, strength,
        u < 0 ? "lower" : "raise", 100 * std::min(1.0, std::abs(u) / 2), s / bins, (s + 1) / bins,
        t / bins, (t + 1) / bins, cell["count"].dump(), cell["mean"].dump());
  }
  const double left = kMargin, right = kMargin + bins * size, bottom = kSide - kMargin,
               top = kSide - kMargin - bins * size;
  body += fmt::format(
      "<rect x=\"{0}\" y=\"{2:.1f}\" width=\"{4:.1f}\" height=\"{4:.1f}\" fill=\"none\" "
      "class=\"axis\"/><line class=\"zero\" x1=\"{0}\" y1=\"{3:.1f}\" x2=\"{1:.1f}\" "
      "y2=\"{2:.1f}\"/>",
      left, right, top, bottom, bins * size);
  for (const double tick : {0.0, 0.5, 1.0}) {
    body += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:g}</text><text x=\"{:.1f}\" "
        "y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>",
        left + tick * (right - left), bottom + 14, tick, left - 5,
        bottom - tick * (bottom - top) + 4, tick);
  }
  body += fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">pi_S</text><text x=\"4\" "
      "y=\"{:.1f}\">pi_T</text>",
      (left + right) / 2, kSide - 8, top + 4 + (bottom - top) / 4);
  return fmt::format(
      "<svg viewBox=\"0 0 {0:g} {0:g}\" style=\"max-width:30rem\" role=\"img\" "
      "aria-label=\"density of pi_S and pi_T\">{1}</svg>",
      kSide, body);
}

std::string running_sum_chart(const Json& responses) {
  double low = 0, high = 0, longest = 1;
  for (const Json& response : responses) {
    for (const Json& point : response["running_sum"]) {
      longest = std::max(longest, number(point[0]));
      low = std::min(low, number(point[1]));
      high = std::max(high, number(point[1]));
    }
  }
  Plot plot(0, longest, low, high);
  plot.round_y_ticks();
  plot.line(0, 0, longest, 0, "zero");
  for (int i = 0; i <= 4; ++i)
    plot.x_tick(longest * i / 4, fmt::format("{:.0f}", longest * i / 4));
  for (const Json& response : responses) {
    const Json& reward = response["reward"];
    const bool right = response.value("correct", reward.is_number() && number(reward) >= 1);
    std::string path = fmt::format("M{:.1f} {:.1f}", plot.x(0), plot.y(0));
    for (const Json& point : response["running_sum"])
      path += fmt::format("L{:.1f} {:.1f}", plot.x(number(point[0])), plot.y(number(point[1])));
    plot.add(fmt::format("<path class=\"run {}\" d=\"{}\"><title>{}, sample {}: {}</title></path>",
                         reward.is_null() ? "ungraded"
                         : right          ? "right"
                                          : "wrong",
                         path, escape_html(response["id"].get<std::string>()),
                         response["sample"].dump(), response["sum_u"].dump()));
  }
  return plot.svg("tokens (running sum of u; right green, wrong red)", "running sum of u");
}

}  // namespace antisd::inline report
