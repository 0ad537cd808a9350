// A comparison as text for a terminal, CSV and LaTeX.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "eval/results/comparison.h"
#include "eval/results/text_table.h"

namespace antisd::inline eval {
namespace {

std::string step_text(const ComparisonRow& row) {
  return row.step ? std::to_string(*row.step) : "-";
}

std::string marked(std::string text, bool mark) {
  return mark && text != "-" ? text + "*" : text;
}

const BenchSummary* bench_of(const ComparisonRow& row, const std::string& name) {
  return row.peak ? row.peak->find(name) : nullptr;
}

std::string scores_text(const Comparison& comparison) {
  TextTable table;
  std::vector<std::string> head = {"run", "method"};
  head.insert(head.end(), comparison.benches.begin(), comparison.benches.end());
  for (const char* name : {"average", "95 %", "step", "speedup"})
    head.emplace_back(name);
  table.add(head);
  for (const ComparisonRow& row : comparison.rows) {
    std::vector<std::string> line = {row.name, row.method.empty() ? "-" : row.method};
    for (const std::string& name : comparison.benches) {
      const BenchSummary* const bench = bench_of(row, name);
      line.push_back(bench == nullptr ? "-" : percent_text(bench->avg));
    }
    line.push_back(row.peak ? marked(percent_text(row.peak->average), row.partial) : "-");
    line.push_back(row.peak ? interval_text(row.peak->average_interval) : "-");
    line.push_back(step_text(row));
    line.push_back(marked(row.speedup, row.speedup_partial));
    table.add(std::move(line));
  }
  return table.text();
}

std::string passes_text(const Comparison& comparison) {
  std::int64_t most = 0;
  for (const ComparisonRow& row : comparison.rows)
    for (const std::string& name : comparison.benches)
      if (const BenchSummary* const bench = bench_of(row, name))
        most = std::max<std::int64_t>(most, std::ssize(bench->pass));
  if (most < 2) return "";
  TextTable table;
  std::vector<std::string> head = {"pass@k", "run"};
  for (const std::int64_t k : shown_k({}, most))
    head.push_back(fmt::format("k={}", k));
  table.add(head);
  for (const std::string& name : comparison.benches) {
    for (const ComparisonRow& row : comparison.rows) {
      const BenchSummary* const bench = bench_of(row, name);
      if (bench == nullptr) continue;
      std::vector<std::string> line = {name, row.name};
      for (const std::int64_t k : shown_k({}, most))
        line.push_back(k <= std::ssize(bench->pass)
                           ? percent_text(bench->pass[static_cast<std::size_t>(k) - 1])
                           : "-");
      table.add(std::move(line));
    }
  }
  return "\n" + table.text();
}

std::string notes_text(const Comparison& comparison) {
  std::string text;
  bool marks = false;
  for (const ComparisonRow& row : comparison.rows) {
    marks |= row.partial || row.speedup_partial;
    for (const std::string& note : row.notes)
      text += fmt::format("{}: {}\n", row.name, note);
  }
  if (marks) text = "* over fewer benchmarks than the table has\n" + text;
  return text.empty() ? "" : "\n" + text;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text)
    quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string csv_number(double value) {
  return std::isfinite(value) ? fmt::format("{:.6g}", value) : "";
}

std::string csv_row_head(const ComparisonRow& row, const std::string& bench) {
  return fmt::format("{},{},{},{}", csv_field(row.name), csv_field(row.method),
                     row.step ? std::to_string(*row.step) : "", csv_field(bench));
}

std::string latex_text(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '\\':
        escaped += "\\textbackslash{}";
        break;
      case '~':
        escaped += "\\textasciitilde{}";
        break;
      case '^':
        escaped += "\\textasciicircum{}";
        break;
      case '<':
        escaped += "\\textless{}";
        break;
      case '>':
        escaped += "\\textgreater{}";
        break;
      case '&':
      case '%':
      case '$':
      case '#':
      case '_':
      case '{':
      case '}':
        escaped += std::string("\\") + c;
        break;
      default:
        escaped += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return escaped;
}

// The figures of one column in percent, the highest (as printed) bold.
std::vector<std::string> latex_column(const std::vector<double>& values) {
  std::vector<std::string> cells;
  double best = -1;
  for (const double value : values)
    if (std::isfinite(value)) best = std::max(best, value);
  for (const double value : values) {
    const std::string text = percent_text(value);
    cells.push_back(text != "-" && text == percent_text(best) ? fmt::format("\\textbf{{{}}}", text)
                                                              : text);
  }
  return cells;
}

}  // namespace

std::string comparison_text(const Comparison& comparison) {
  return scores_text(comparison) + passes_text(comparison) + notes_text(comparison);
}

std::string comparison_csv(const Comparison& comparison) {
  std::string csv =
      "run,method,step,benchmark,problems,n,avg,low,high,truncated,mean_tokens,"
      "extraction_failed,grader_failed,speedup\n";
  for (const ComparisonRow& row : comparison.rows) {
    if (!row.peak) continue;
    for (const std::string& name : comparison.benches) {
      const BenchSummary* const bench = bench_of(row, name);
      if (bench == nullptr) continue;
      csv += fmt::format("{},{},{},{},{},{},{},{},{},{},\n", csv_row_head(row, name),
                         bench->problems, bench->n, csv_number(bench->avg),
                         csv_number(bench->avg_interval.low), csv_number(bench->avg_interval.high),
                         csv_number(bench->truncated), csv_number(bench->mean_tokens),
                         csv_number(bench->extraction_failed), bench->grader_failed);
    }
    const Interval& interval = row.peak->average_interval;
    csv += fmt::format("{},,,{},{},{},,,,,{}\n", csv_row_head(row, "average"),
                       csv_number(row.peak->average), csv_number(interval.low),
                       csv_number(interval.high), row.speedup == "-" ? "" : row.speedup);
  }
  return csv;
}

std::string pass_curves_csv(const Comparison& comparison) {
  std::string csv = "run,method,step,benchmark,k,pass,low,high\n";
  for (const ComparisonRow& row : comparison.rows) {
    for (const std::string& name : comparison.benches) {
      const BenchSummary* const bench = bench_of(row, name);
      for (std::size_t i = 0; bench != nullptr && i < bench->pass.size(); ++i)
        csv += fmt::format("{},{},{},{},{}\n", csv_row_head(row, name), i + 1,
                           csv_number(bench->pass[i]), csv_number(bench->pass_interval[i].low),
                           csv_number(bench->pass_interval[i].high));
    }
  }
  return csv;
}

std::string comparison_latex(const Comparison& comparison) {
  std::vector<std::vector<std::string>> columns;
  const auto add_column = [&](const auto& value_of) {
    std::vector<double> values;
    for (const ComparisonRow& row : comparison.rows)
      values.push_back(value_of(row));
    columns.push_back(latex_column(values));
  };
  for (const std::string& name : comparison.benches) {
    add_column([&](const ComparisonRow& row) {
      const BenchSummary* const bench = bench_of(row, name);
      return bench == nullptr ? kNoFigure : bench->avg;
    });
  }
  add_column([](const ComparisonRow& row) { return row.peak ? row.peak->average : kNoFigure; });

  std::string tex = "\\begin{tabular}{l" + std::string(comparison.benches.size() + 2, 'c') +
                    "}\n\\toprule\nMethod";
  for (const std::string& name : comparison.benches)
    tex += " & " + latex_text(name);
  tex += " & Average & Speedup \\\\\n\\midrule\n";
  bool marks = false;
  for (std::size_t r = 0; r < comparison.rows.size(); ++r) {
    const ComparisonRow& row = comparison.rows[r];
    tex += latex_text(row.name);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      tex += " & " + columns[c][r];
      if (c + 1 < columns.size() || !row.step) continue;
      tex += fmt::format("$_{{{}}}$", *row.step);
      if (row.partial) tex += "$^{*}$";
    }
    tex += " & " + (row.speedup == "x"   ? "$\\times$"
                    : row.speedup == "-" ? "--"
                                         : row.speedup + "$\\times$");
    tex += row.speedup_partial && row.speedup != "-" ? "$^{*}$ \\\\\n" : " \\\\\n";
    marks |= row.partial || row.speedup_partial;
  }
  tex += "\\bottomrule\n\\end{tabular}\n";
  if (marks) tex += "% * over fewer benchmarks than the table has\n";
  return tex;
}

}  // namespace antisd::inline eval
