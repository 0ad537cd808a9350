#include "report/inspect/report_page.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/inspect/charts.h"
#include "report/inspect/token_text.h"
#include "report/page/html.h"

namespace antisd::inline report {
namespace {

constexpr std::string_view kPageStyle = R"css(
.pair { display: grid; grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); gap: 1rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1rem; }
figure { margin: 0; } td.text, th.text { text-align: left; } td code { white-space: pre; }
.heat, .given { background: var(--panel); padding: .7rem; white-space: pre-wrap; font: .86rem/1.7 ui-monospace, monospace;
  max-height: 36rem; overflow-y: auto; }
.heat span { border-radius: 2px; cursor: default; } .heat span.chosen { outline: 2px solid var(--text); }
.heat span.special { border: 1px solid var(--faint); }
.numbers { position: sticky; bottom: 0; background: var(--back); border-top: 1px solid var(--line); padding: .4rem 0;
  font-variant-numeric: tabular-nums; min-height: 2.2rem; }
.scale { display: inline-block; width: 9rem; height: .8rem; vertical-align: middle;
  background: linear-gradient(90deg, var(--lower), transparent, var(--raise)); }
@media (max-width: 48rem) { .pair { grid-template-columns: minmax(0, 1fr); } }
@media print { .heat, .given { max-height: none; } }
)css";

// Text is inserted only as text: no response can become markup.
constexpr std::string_view kScript = R"js(
const columns = [["s", "s"], ["t", "t"], ["u", "u"], ["phi", "phi"], ["term", "term"], ["advantage", "A_t"],
  ["h_s", "H_S"], ["h_t", "H_T"]];
function numbers(response, i) {
  const values = columns.map(([key, name]) => `${name} ${response[key][i] ?? "-"}`);
  return `token ${i}, id ${response.ids[i]}, ${report.kinds[response.kind[i]]}: ${values.join(", ")}`;
}
function paint(box, response) {
  const special = new Set(response.special), parts = document.createDocumentFragment();
  response.tokens.forEach((text, i) => {
    const span = document.createElement("span"), u = response.u[i];
    span.textContent = text.replace(/\n/g, "\u23CE\n");
    span.dataset.token = i;
    if (special.has(i)) span.className = "special";
    if (u != null && u !== 0) {
      const strength = Math.round(80 * Math.min(1, Math.abs(u) / 3));
      span.style.background = `color-mix(in srgb, var(--${u < 0 ? "lower" : "raise"}) ${strength}%, transparent)`;
    }
    parts.append(span);
  });
  box.append(parts);
  const line = box.parentElement.querySelector(".numbers");
  let chosen = null;
  box.addEventListener("mouseover", event => {
    const span = event.target.closest("[data-token]");
    if (!span) return;
    line.textContent = numbers(response, +span.dataset.token);
    span.title = line.textContent.replace(/[,:] /g, "\n");
  });
  box.addEventListener("click", event => {
    const span = event.target.closest("[data-token]");
    if (!span) return;
    chosen?.classList.remove("chosen");
    (chosen = span).classList.add("chosen");
    line.textContent = numbers(response, +span.dataset.token);
  });
}
for (const section of document.querySelectorAll("[data-response]")) {
  const response = report.responses[+section.dataset.response];
  section.querySelector(".given").textContent = response.teacher_prompt;
  paint(section.querySelector(".heat"), response);
}
)js";

std::string number_cell(const Json& value) {
  if (!value.is_number()) return "\u2013";
  if (value.is_number_integer()) return value.dump();
  return fmt::format("{:.4f}", std::round(value.get<double>() * 1e4) / 1e4 + 0.0);  // no -0.0000
}

std::string percent(const Json& value) {
  return value.is_number() ? fmt::format("{:.2f} %", 100 * value.get<double>()) : "\u2013";
}

std::string cells(std::initializer_list<std::string> values) {
  std::string row = "<tr>";
  for (const std::string& value : values)
    row += "<td>" + value + "</td>";
  return row + "</tr>";
}

std::string table(const std::string& head, const std::string& rows) {
  return "<div class=\"scroll\"><table><thead>" + head + "</thead><tbody>" + rows +
         "</tbody></table></div>";
}

std::string figure(const std::string& chart, const std::string& caption) {
  return "<figure>" + chart + "<figcaption>" + caption + "</figcaption></figure>";
}

std::string interval(const Json& row) {
  return row["low"].is_number()
             ? fmt::format("[{}, {}]", number_cell(row["low"]), number_cell(row["high"]))
             : "\u2013";
}

std::string overview(const Json& summary) {
  const Json &u = summary["u"], &term = summary["term"], &sums = summary["sum_u"];
  std::string tails, quantiles;
  for (const Json& row : u["tails"])
    tails += cells({"|u| &ge; " + fmt::format("{:g}", row["limit"].get<double>()),
                    percent(row["below"]), percent(row["above"])});
  for (const Json& row : u["quantiles"])
    quantiles += cells({fmt::format("{:g}", row["q"].get<double>()), number_cell(row["u"])});
  return fmt::format(
             "<p>{} responses ({} right, {} wrong, {} not graded) of {} problems, {} tokens{}. "
             "Mean u {} {}, deviation {}, {} of tokens below 0. Intervals are 95 %, over {}.</p>"
             "<p>Of the advantage: the sum of |term| is {} of the sum of |A|; the sign of A flips "
             "at {} of the tokens, and at {} A is 0 and only the term counts. u sums to {} over "
             "a response ({} where it is right, {} where it is wrong).</p>",
             number_cell(summary["responses"]), number_cell(summary["right"]),
             number_cell(summary["wrong"]), number_cell(summary["ungraded"]),
             number_cell(summary["problems"]), number_cell(summary["tokens"]),
             summary["tokens_not_finite"] == Json(0)
                 ? ""
                 : fmt::format(" and {} without a finite u",
                               number_cell(summary["tokens_not_finite"])),
             number_cell(u["mean"]), interval(u), number_cell(u["deviation"]),
             percent(u["negative"]), escape_html(summary["clusters"].get<std::string>()),
             number_cell(term["ratio"]), percent(term["flipped"]), percent(term["alone"]),
             number_cell(sums["mean"]), number_cell(sums["right"]), number_cell(sums["wrong"])) +
         "<h2>Distribution of u</h2><div class=\"charts\">" +
         figure(histogram_chart(summary["histogram"]),
                "Blue: the teacher would rather not have written the token; red: the solution "
                "makes it likelier.") +
         figure(density_chart(summary["density"]),
                "Tokens by probability under student and teacher; colour is mean u, strength the "
                "number of tokens.") +
         "</div><div class=\"charts\">" +
         table("<tr><th>tail</th><th>below</th><th>above</th></tr>", tails) +
         table("<tr><th>quantile</th><th>u</th></tr>", quantiles) + "</div>";
}

std::string kinds_table(const Json& kinds) {
  std::string rows;
  for (const Json& row : kinds)
    rows += cells({escape_html(row["kind"].get<std::string>()), number_cell(row["count"]),
                   percent(row["share"]), number_cell(row["mean"]), interval(row),
                   percent(row["negative"]), number_cell(row["sum"])});
  return "<h2>Kinds of tokens</h2>" +
         table(
             "<tr><th>kind</th><th>tokens</th><th>share</th><th>mean u</th><th>95 %</th><th>u "
             "&lt; 0</th><th>sum of u</th></tr>",
             rows);
}

std::string top_table(const Json& tokens, const std::string& caption) {
  std::string rows;
  for (const Json& row : tokens)
    rows +=
        cells({"<code>" + escape_html(escape_controls(row["token"].get<std::string>())) + "</code>",
               escape_html(row["kind"].get<std::string>()), number_cell(row["count"]),
               number_cell(row["mean"]), interval(row)});
  return "<div><h2>" + caption + "</h2>" +
         table("<tr><th>token</th><th>kind</th><th>count</th><th>mean u</th><th>95 %</th></tr>",
               rows) +
         "</div>";
}

std::string response_section(const Json& response, std::size_t index) {
  const std::size_t shown = response["tokens"].size(),
                    all = response["token_count"].get<std::size_t>();
  const Json& reward = response["reward"];
  return fmt::format(
      "<section data-response=\"{}\"><h2>{}{}, sample {}</h2><p class=\"note\">{}{}{}, {} "
      "tokens{}, "
      "solution from {}, A {}, lambda {}, sum of u {}</p><div class=\"pair\"><div><div "
      "class=\"heat\"></div><div class=\"numbers note\">Point at a token, or tap it, for its "
      "numbers.</div></div><div><div class=\"note\">The teacher was given</div><div "
      "class=\"given\"></div></div></div></section>",
      index, escape_html(response["id"].get<std::string>()),
      response.contains("step") ? fmt::format(", step {}", number_cell(response["step"])) : "",
      number_cell(response["sample"]),
      reward.is_number() ? "reward " + number_cell(reward) : std::string("not graded"),
      response["truncated"] == Json(true) ? ", truncated" : "",
      response["reason"] == Json("") || response["truncated"] == Json(true)
          ? ""
          : " (" + escape_html(response["reason"].get<std::string>()) + ")",
      all, shown < all ? fmt::format(" (the first {} are shown)", shown) : "",
      escape_html(response["source"].get<std::string>()), number_cell(response["group_advantage"]),
      number_cell(response["lambda"]), number_cell(response["sum_u"]));
}

}  // namespace

Json bounded_report(Json report, std::size_t tokens) {
  for (Json& response : report["responses"]) {
    const std::size_t count = response["tokens"].size(), keep = std::min(count, tokens);
    tokens -= keep;
    if (keep == count) continue;
    for (const char* name :
         {"ids", "tokens", "kind", "s", "t", "u", "phi", "term", "advantage", "h_s", "h_t"}) {
      Json& column = response[name];
      const std::size_t kept = std::min(keep, column.size());
      column.erase(column.begin() + static_cast<std::ptrdiff_t>(kept), column.end());
    }
    Json& special = response["special"];
    special.erase(std::find_if(special.begin(), special.end(),
                               [&](const Json& i) { return i.get<std::size_t>() >= keep; }),
                  special.end());
  }
  return report;
}

std::string report_page(const Json& whole) {
  const Json report = bounded_report(whole);
  const Json& summary = report["summary"];
  Document document{.title = "u = t - s: " + report["model"].get<std::string>()};
  document.style = std::string(chart_style()) + std::string(kPageStyle);
  document.body = fmt::format(
      "<h1>What the solution tells: u = t - s</h1><p class=\"note\">{}, method {}: A_t = {}. u "
      "<span class=\"scale\"></span> from -3 to 3</p>",
      escape_html(report["model"].get<std::string>()),
      escape_html(report["method"].get<std::string>()),
      escape_html(report["formula"].get<std::string>()));
  for (std::size_t i = 0; i < report["responses"].size(); ++i)
    document.body += response_section(report["responses"][i], i);
  document.body += overview(summary) + kinds_table(summary["kinds"]) + "<div class=\"charts\">" +
                   top_table(summary["highest"], "Highest mean u") +
                   top_table(summary["lowest"], "Lowest mean u") +
                   "</div><h2>Along the response</h2><div class=\"charts\">" +
                   figure(means_chart(summary["position"], "position in tokens"),
                          "Mean u by position, bins that double.") +
                   figure(means_chart(summary["relative_position"], "share of the response"),
                          "Mean u by share of the response.") +
                   figure(running_sum_chart(report["responses"]),
                          "The sum of u up to each token; its end is the log-ratio of the whole "
                          "response under teacher and student.") +
                   "</div>";
  document.script = "const report = " + script_json(report) + ";" + std::string(kScript);
  return render(document);
}

}  // namespace antisd::inline report
