#include "report/inspect/terminal.h"

#include <cmath>

#include <fmt/format.h>

#include "report/inspect/token_text.h"

namespace antisd::inline report {
namespace {

std::string number_text(const Json& value, int width = 9) {
  if (!value.is_number()) return fmt::format("{:>{}}", "-", width);
  if (value.is_number_integer()) return fmt::format("{:>{}}", value.get<std::int64_t>(), width);
  const double shown = std::round(value.get<double>() * 1e4) / 1e4 + 0.0;  // avoids -0.0000
  return fmt::format("{:>{}.4f}", shown, width);
}

std::string percent_text(const Json& value) {
  return value.is_number() ? fmt::format("{:>6.2f} %", 100 * value.get<double>()) : "     -";
}

const Json& at(const Json& column, std::size_t i) {
  static const Json kNothing = nullptr;
  return i < column.size() ? column[i] : kNothing;
}

std::string bare(const Json& value) {
  const std::string text = number_text(value, 0);
  return text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

// 256-colour backgrounds that are readable on light and dark terminals, by |u|.
std::string colour(double u) {
  constexpr int kLower[] = {189, 153, 111, 27}, kRaise[] = {224, 217, 210, 160};
  const double size = std::abs(u);
  if (!(size >= 0.1)) return "";
  const int level = size < 0.5 ? 0 : size < 1 ? 1 : size < 2 ? 2 : 3;
  return fmt::format("\033[48;5;{};38;5;{}m", (u < 0 ? kLower : kRaise)[level],
                     level < 3 ? 16 : 231);
}

std::string head_text(const Json& response) {
  const Json& reward = response["reward"];
  std::string verdict = "not graded";
  if (reward.is_number()) verdict = fmt::format("reward {}", bare(reward));
  return fmt::format(
      "{}{}, sample {}: {}{}, {} tokens, solution from {}, A {}, lambda {}, sum of u {}\n",
      escape_controls(response["id"].get<std::string>()),
      response.contains("step") ? fmt::format(", step {}", bare(response["step"])) : "",
      bare(response["sample"]), verdict, response["truncated"] == Json(true) ? ", truncated" : "",
      bare(response["token_count"]), escape_controls(response["source"].get<std::string>()),
      bare(response["group_advantage"]), bare(response["lambda"]), bare(response["sum_u"]));
}

std::string coloured_text(const Json& response) {
  std::string out;
  const Json& tokens = response["tokens"];
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Json& u = at(response["u"], i);
    const std::string on = colour(u.is_number() ? u.get<double>() : 0);
    const std::string& text = tokens[i].get_ref<const std::string&>();
    // A background up to the end of the line would look like a long token.
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      std::string piece = escape_controls(std::string_view(text).substr(begin, end - begin));
      if (end < text.size() && !on.empty()) piece += "\u23CE";
      out += on.empty() || piece.empty() ? piece : on + piece + "\033[0m";
      if (end < text.size()) out += "\n";
      begin = end + 1;
    }
  }
  return out + "\n";
}

std::string token_table(const Json& response, const Json& kinds) {
  std::string out =
      fmt::format("{:>6} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8}  {:<13} {}\n",
                  "token", "id", "s", "t", "u", "phi", "term", "A_t", "H_S", "H_T", "kind", "text");
  for (std::size_t i = 0; i < response["tokens"].size(); ++i) {
    out += fmt::format("{:>6} {}", i, number_text(response["ids"][i], 7));
    for (const char* name : {"s", "t", "u", "phi", "term", "advantage"})
      out += " " + number_text(at(response[name], i));
    for (const char* name : {"h_s", "h_t"})
      out += " " + number_text(at(response[name], i), 8);
    out += fmt::format("  {:<13} {}\n",
                       kinds[response["kind"][i].get<std::size_t>()].get<std::string>(),
                       escape_controls(response["tokens"][i].get<std::string>()));
  }
  return out;
}

std::string mean_columns(const Json& row) {
  return fmt::format("{} {} {} {}", number_text(row["count"], 8), number_text(row["mean"]),
                     number_text(row["low"]), number_text(row["high"]));
}

std::string top_table_text(const Json& rows, const std::string& title) {
  std::string out = fmt::format("\n{}\n{:>8} {:>9} {:>9} {:>9}  {:<13} {}\n", title, "count",
                                "mean u", "low", "high", "kind", "token");
  for (const Json& row : rows) {
    // In quotes: a token that starts with a space is another one.
    out += fmt::format("{}  {:<13} '{}'\n", mean_columns(row), row["kind"].get<std::string>(),
                       escape_controls(row["token"].get<std::string>()));
  }
  return out;
}

std::string position_table(const Json& rows, const std::string& title) {
  std::string out = fmt::format("\n{}\n{:>8} {:>8} {:>8} {:>9} {:>9} {:>9}\n", title, "from", "to",
                                "count", "mean u", "low", "high");
  for (const Json& row : rows)
    out += fmt::format("{:>8} {:>8} {}\n", row["from"].dump(), row["to"].dump(), mean_columns(row));
  return out;
}

}  // namespace

std::string response_text(const Json& response, const Json& kinds, bool coloured) {
  return head_text(response) + (coloured ? coloured_text(response) : token_table(response, kinds));
}

std::string summary_text(const Json& summary) {
  const Json &u = summary["u"], &term = summary["term"];
  std::string out = fmt::format(
      "{} responses ({} right, {} wrong) of {} problems, {} tokens; intervals are 95 %, over {}\n",
      bare(summary["responses"]), bare(summary["right"]), bare(summary["wrong"]),
      bare(summary["problems"]), bare(summary["tokens"]), summary["clusters"].get<std::string>());
  out += fmt::format("u: mean {} [{}, {}], deviation {}, {} below 0, {} to {}\n", bare(u["mean"]),
                     bare(u["low"]), bare(u["high"]), bare(u["deviation"]),
                     percent_text(u["negative"]).substr(1), bare(u["min"]), bare(u["max"]));
  out += "quantiles:";
  for (const Json& row : u["quantiles"])
    out += fmt::format("  {:g}: {}", row["q"].get<double>(), bare(row["u"]));
  out += "\ntails:";
  for (const Json& row : u["tails"])
    out += fmt::format("  |u| >= {:g}: {} below, {} above", row["limit"].get<double>(),
                       percent_text(row["below"]), percent_text(row["above"]));
  out += fmt::format(
      "\nterm: sum of |term| over sum of |A| {}; the sign of A flips at {} of tokens; A is 0 at "
      "{}\n",
      bare(term["ratio"]), percent_text(term["flipped"]), percent_text(term["alone"]));
  out += fmt::format("sum of u over a response: mean {}, right {}, wrong {}\n",
                     bare(summary["sum_u"]["mean"]), bare(summary["sum_u"]["right"]),
                     bare(summary["sum_u"]["wrong"]));
  out += fmt::format("\nby kind\n{:>8} {:>9} {:>9} {:>9} {:>9} {:>9}  {}\n", "count", "mean u",
                     "low", "high", "tokens", "u < 0", "kind");
  for (const Json& row : summary["kinds"])
    out += fmt::format("{} {:>9} {:>9}  {}\n", mean_columns(row), percent_text(row["share"]),
                       percent_text(row["negative"]), row["kind"].get<std::string>());
  out += top_table_text(summary["highest"], "highest mean u: the solution makes them likelier");
  out +=
      top_table_text(summary["lowest"], "lowest mean u: the teacher would not have written them");
  out += position_table(summary["position"], "by position");
  out += position_table(summary["relative_position"], "by share of the response");
  return out;
}

}  // namespace antisd::inline report
