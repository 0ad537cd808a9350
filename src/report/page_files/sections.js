// Tables and lists beside the charts.
function statusOf(run) {
  const facts = run.facts.run;
  if (facts.exit_reason) return String(facts.exit_reason);
  if (!run.rows.written) return "no row yet";
  return "not ended, last row " + new Date(1000 * run.rows.written).toLocaleString();
}

function runsTable() {
  const rows = shownSeries().flatMap(series => series.runs.map(run => {
    const reward = meanLine(run, "critic/rewards/mean");
    const speed = meanLine(run, "perf/throughput");
    return [element("span", {}, keyOf(series), run.facts.name), words(run.facts.method || "–"), run.facts.seed || "–",
            run.rows.last + (run.facts.steps_planned ? " / " + run.facts.steps_planned : ""),
            reward.length ? percent(reward[reward.length - 1].y) : "–",
            speed.length ? shortNumber(Math.round(speed[speed.length - 1].y)) : "–",
            words(statusOf(run) + (run.facts.warnings.length ? `, ${counted(run.facts.warnings.length, "warning")}` : ""))];
  }));
  return table(["run", words("method"), "seed", "step", "reward, %", "tokens/s", words("state")], rows);
}

const benchNames = () => [...new Set(shownRuns().flatMap(run => run.facts.evaluations.flatMap(evaluation => Object.keys(evaluation.benches))))].sort();

function withInterval(value, interval) {
  if (!isNumber(value)) return "–";
  return percent(value) + (interval ? ` (${percent(interval[0])} to ${percent(interval[1])})` : "");
}

// Each run at its best evaluation, as in the paper's table.
function evaluationTable(names) {
  const rows = shownRuns().filter(run => run.facts.evaluations.length).map(run => {
    const peak = run.facts.evaluations.find(evaluation => evaluation.step === run.facts.peak);
    return [run.facts.name, String(peak.step), withInterval(averageOf(peak), peak.average_interval),
            ...names.map(name => withInterval((peak.benches[name] || {}).avg, (peak.benches[name] || {}).avg_interval))];
  });
  return table(["run", "best at step", "average", ...names], rows);
}

function evaluationDetails(names) {
  const rows = shownRuns().flatMap(run => {
    const last = run.facts.evaluations[run.facts.evaluations.length - 1];
    return !last ? [] : names.filter(name => last.benches[name]).map(name => {
      const bench = last.benches[name];
      return [run.facts.name, words(name), String(last.step), shortNumber(bench.problems), shortNumber(bench.n), percent(bench.avg),
              percent(bench.truncated), shortNumber(bench.mean_tokens), percent(bench.extraction_failed), shortNumber(bench.grader_failed)];
    });
  });
  return table(["run", words("benchmark"), "step", "problems", "n", "avg@n, %", "truncated, %", "mean tokens", "no answer found, %",
                "grader failed"], rows);
}

function comparisonTable() {
  const comparison = state.comparison;
  if (!comparison) return null;
  const shown = new Set(shownRuns().map(run => run.facts.name));
  const hidden = new Set([...state.runs.values()].map(run => run.facts.name).filter(name => !shown.has(name)));
  const rows = comparison.rows.filter(([name]) => !hidden.has(name));
  const marked = rows.flat().some(text => text.endsWith("*"));
  return element("div", {id: "comparison"}, table(comparison.head, rows), element("p", {class: "note"},
    "Speedup: the step of GRPO's best average (its run of the same seed, where there is one) over the first step that reaches it; x: never reached." +
    (marked ? " * over fewer benchmarks than others have." : "")));
}

const kPhases = [["gen", "sampling"], ["reward", "waiting for grades"], ["score", "teacher's pass"], ["adv", "advantages"],
                 ["update_actor", "update"], ["save", "saving"], ["eval", "evaluation"]];
const secondsOf = (runs, phase) => mean(runs.map(run => run.rows.times.get(phase)).filter(sum => sum && sum[1]).map(sum => sum[0] / sum[1]));

let phaseChart = null;
function drawPhases(figure) {
  const series = drawnSeries().filter(one => secondsOf(one.runs, "step") !== null);
  const phases = kPhases.filter(([phase]) => series.some(one => secondsOf(one.runs, phase) > 0));
  const text = colour("--text"), line = colour("--line");
  const datasets = phases.map(([phase, label], i) => ({label, data: series.map(one => secondsOf(one.runs, phase) || 0), backgroundColor: seriesColour(i),
    borderColor: colour("--back"), borderWidth: 1}));
  const data = {labels: series.map(one => one.name), datasets};
  const axis = {stacked: true, grid: {color: line, borderColor: line}, ticks: {color: text}};
  const options = {indexAxis: "y", animation: false, responsive: true, maintainAspectRatio: false,
    scales: {x: Object.assign({title: {display: true, text: "seconds a step", color: text}}, axis), y: axis},
    plugins: {legend: {position: "bottom", labels: {color: text}}}};
  figure.querySelector(".plot").style.height = 7 + 2 * series.length + "rem";
  if (phaseChart) {
    Object.assign(phaseChart, {data, options});
    phaseChart.update("none");
  } else {
    phaseChart = new Chart(figure.querySelector("canvas"), {type: "bar", data, options});
  }
  figure.querySelector(".table").replaceChildren(table(["seconds a step", ...phases.map(([, label]) => label), "whole step"],
    series.map(one => [one.name, ...phases.map(([phase]) => shortNumber(secondsOf(one.runs, phase))), shortNumber(secondsOf(one.runs, "step"))])));
}

function differencesTable() {
  const runs = shownRuns();
  const rows = state.differences.map(difference => [difference.key, ...runs.map(run => difference.values[run.id] || "–")])
    .filter(row => new Set(row.slice(1)).size > 1);
  if (!rows.length) return element("p", {class: "note"}, "No key differs between these runs.");
  return table(["key", ...runs.map(run => run.facts.name)], rows.map(row => [row[0], ...row.slice(1).map(words)]));
}

function warningsList() {
  const items = shownRuns().filter(run => run.facts.warnings.length || run.facts.notes.length).map(run =>
    element("details", {open: run.facts.warnings.length + run.facts.notes.length <= 5},
      element("summary", {}, `${run.facts.name}: ${run.facts.warnings.length + run.facts.notes.length}`),
      element("ul", {}, run.facts.warnings.map(warning => element("li", {}, warning.text,
        element("span", {class: "status"}, ` (${warning.count > 1 ? warning.count + " times, " : ""}${warning.first}${warning.count > 1 ? " to " + warning.last : ""})`))),
        run.facts.notes.map(note => element("li", {}, "not shown: " + note)))));
  return items.length ? items : [element("p", {class: "note"}, "None.")];
}

function gateList() {
  const gated = shownRuns().filter(run => run.facts.gate.length);
  return gated.map(run => element("details", {}, element("summary", {}, `${run.facts.name}: ${counted(run.facts.gate.length, "change")} of the gate`),
    element("p", {}, run.facts.gate.map(([step, open]) => `${open ? "opened" : "shut"} at step ${step}`).join(", "))));
}

// ---- samples: the same prompt across runs ----
// samplesOf(step, run) returns {rows, whole} or nothing; the report contains them, the dashboard
// requests them.
const samples = {step: null, prompt: null, byRun: new Map(), asked: 0};

async function openSamples(step, box) {
  const asked = ++samples.asked;
  const runs = shownRuns().filter(run => run.facts.dumps.includes(step)).slice(0, kMaxDrawn);
  const answers = await Promise.all(runs.map(run => samplesOf(step, run)));
  if (asked !== samples.asked) return;  // a later choice replaced this one
  samples.step = step;
  samples.byRun = new Map(runs.map((run, i) => [run, answers[i]]).filter(([, answer]) => answer && answer.rows.length));
  drawSamples(box);
}

function promptChoices() {
  const count = new Map();
  for (const answer of samples.byRun.values())
    for (const id of new Set(answer.rows.map(row => row.prompt_id))) count.set(id, (count.get(id) || 0) + 1);
  return [...count.entries()].sort((a, b) => b[1] - a[1]);  // shared by most runs first
}

function sampleCard(run, rows) {
  let at = 0;
  const card = element("div", {class: "card"});
  const draw = () => {
    const row = rows[at];
    const verdict = row.reward === null || row.reward === undefined ? ["no grade", "warn"] : ["reward " + shortNumber(row.reward), row.reward > 0 ? "good" : "bad"];
    card.replaceChildren(element("strong", {}, run.facts.name), element("div", {class: "choices"},
      element("button", {type: "button", onclick: () => { at = (at + 1) % rows.length; draw(); }}, `response ${at + 1} of ${rows.length}`),
      element("span", {class: verdict[1]}, verdict[0]), row.truncated ? element("span", {class: "warn"}, "truncated") : null,
      element("span", {class: "status"}, isNumber(row.tokens) ? row.tokens + " tokens" : "")),
      row.reason ? element("div", {class: "status"}, row.reason) : "", element("pre", {}, row.text));
  };
  draw();
  return card;
}

function drawSamples(box) {
  const prompts = promptChoices();
  if (!prompts.some(([id]) => id === samples.prompt)) samples.prompt = prompts.length ? prompts[0][0] : null;
  const chooser = element("select", {id: "prompt", onchange: event => { samples.prompt = event.target.value; drawSamples(box); }},
    prompts.map(([id, runs]) => element("option", {value: id, selected: id === samples.prompt}, `${id} (${runs} of ${samples.byRun.size} runs)`)));
  const cards = [...samples.byRun.entries()].map(([run, answer]) => [run, answer.rows.filter(row => row.prompt_id === samples.prompt)])
    .filter(([, rows]) => rows.length).map(([run, rows]) => sampleCard(run, rows));
  box.replaceChildren(element("div", {class: "choices"}, element("label", {}, "prompt ", chooser)), element("div", {class: "cards"}, cards));
}

function sampleSteps() {
  const steps = new Map();
  for (const run of shownRuns()) for (const step of run.facts.dumps) steps.set(step, (steps.get(step) || 0) + 1);
  return [...steps.entries()].sort((a, b) => a[0] - b[0]);
}
