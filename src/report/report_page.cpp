#include "report/report_page.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "report/page/html.h"
#include "report/page_files.h"
#include "report/samples.h"

namespace antisd::inline report {
namespace {

constexpr std::size_t kSampleSteps = 3, kSamplePrompts = 4, kSamplesOfAPrompt = 4;
constexpr std::size_t kSampleRuns = 12;
constexpr std::size_t kSampleBudget = 2'000'000;  // bytes of text in total
constexpr SampleLimits kLimits{.file_bytes = 16 << 20, .rows = 512, .text_bytes = 6'000};

// The first, a middle and the last of the steps for which most runs have dumps.
std::vector<std::int64_t> common_steps(const RunSet& runs) {
  std::map<std::int64_t, std::size_t> count;
  for (const RunSet::Entry& entry : runs.runs()) {
    for (const std::int64_t step : entry.reader->dumps())
      ++count[step];
  }
  std::size_t most = 0;
  for (const auto& [step, runs_with_it] : count)
    most = std::max(most, runs_with_it);
  std::vector<std::int64_t> steps;
  for (const auto& [step, runs_with_it] : count) {
    if (runs_with_it == most) steps.push_back(step);
  }
  if (steps.size() <= kSampleSteps) return steps;
  return {steps.front(), steps[steps.size() / 2], steps.back()};
}

std::set<std::string> common_prompts(const std::map<std::string, Json>& by_run) {
  std::map<std::string, std::size_t> count;
  std::vector<std::string> order;  // as in the dumps
  for (const auto& [id, answer] : by_run) {
    std::set<std::string> prompts;
    for (const Json& row : answer["rows"])
      prompts.insert(row["prompt_id"].get<std::string>());
    for (const std::string& prompt : prompts) {
      if (count[prompt]++ == 0) order.push_back(prompt);
    }
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](const std::string& a, const std::string& b) { return count[a] > count[b]; });
  order.resize(std::min(order.size(), kSamplePrompts));
  return {order.begin(), order.end()};
}

Document page(const std::string& title, bool live) {
  Document document{.title = title};
  document.style = page_style();
  document.body = fmt::format(
      "<main id=\"page\" data-live=\"{}\"><h1>{}</h1>\n"
      "<noscript><p>The charts of this page need JavaScript; it loads nothing from "
      "elsewhere.</p></noscript></main>\n",
      live ? "yes" : "no", escape_html(title));
  document.script =
      fmt::format("{}\n(() => {{\n\"use strict\";\n{}\n}})();", chart_library(), page_script());
  return document;
}

}  // namespace

Json choose_samples(const RunSet& runs) {
  Json samples = Json::object();
  std::size_t left = kSampleBudget;
  for (const std::int64_t step : common_steps(runs)) {
    std::map<std::string, Json> by_run;
    for (const RunSet::Entry& entry : runs.runs()) {
      if (by_run.size() >= kSampleRuns) break;
      const auto& dumps = entry.reader->dumps();
      if (!std::binary_search(dumps.begin(), dumps.end(), step)) continue;
      by_run[entry.id] = read_samples(entry.reader->folder(), step, kLimits);
    }
    const std::set<std::string> prompts = common_prompts(by_run);
    Json of_step = Json::object();
    for (const auto& [id, answer] : by_run) {
      std::map<std::string, std::size_t> taken;
      Json rows = Json::array();
      for (const Json& row : answer["rows"]) {
        const auto prompt = row["prompt_id"].get<std::string>();
        const std::size_t bytes = row["text"].get_ref<const std::string&>().size() + 200;
        if (!prompts.contains(prompt) || taken[prompt] >= kSamplesOfAPrompt || bytes > left)
          continue;
        ++taken[prompt];
        left -= bytes;
        rows.push_back(row);
      }
      of_step[id] = {{"rows", std::move(rows)}, {"whole", false}};
    }
    samples[std::to_string(step)] = std::move(of_step);
  }
  return samples;
}

std::string report_html(const RunSet& runs, const std::string& title) {
  Document document = page(title, false);
  document.body += "<script type=\"application/json\" id=\"data\">{\"update\":" +
                   script_json_text(runs.update(0)) +
                   ",\"samples\":" + script_json(choose_samples(runs)) + "}</script>";
  return render(document);
}

std::string live_html(const std::string& title, const std::string& nonce) {
  Document document = page(title, true);
  document.nonce = nonce;
  return render(document);
}

}  // namespace antisd::inline report
