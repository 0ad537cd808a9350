// The page: sections in their order, drawn from `state` after every update.
const live = document.getElementById("page").dataset.live === "yes";
const embedded = live ? null : JSON.parse(document.getElementById("data").textContent);

async function samplesOf(step, run) {
  if (!live) return ((embedded.samples || {})[step] || {})[run.id];
  const answer = await fetch(`/api/samples?run=${encodeURIComponent(run.id)}&step=${step}`);
  return answer.ok ? answer.json() : null;
}

function section(id, title, text) {
  const body = element("div", {id});
  const whole = element("section", {}, element("h2", {}, title), text ? element("p", {class: "note"}, text) : null, body);
  document.getElementById("page").append(whole);
  return {whole, body};
}
const show = (part, shown) => { part.whole.hidden = !shown; };

const status = element("span", {class: "status", id: "status"});
const filter = element("input", {id: "filter", type: "search", placeholder: "words of a run's name", "aria-label": "show runs whose name has these words",
  oninput: event => { state.filter = event.target.value.trim(); draw(); }});
document.getElementById("page").append(element("div", {id: "bar"}, element("label", {}, "Filter", filter), status));

const parts = {
  runs: section("runs", "Runs", "Reward and speed are means of the last 20 steps."),
  evaluation: section("evaluation", "Evaluation", ""),
  curves: section("curves", "Training", "Faint: each step (the smallest and the largest of several where a run is long). Bold: the mean of the last 20 steps. " +
    "Runs that differ only in their seed are one curve: their mean, with a band from the lowest to the highest. A click on a name hides it."),
  entropy: section("entropy", "Entropy and the gate", "Nats a token of the teacher, who sees a solution, and of the student. The gate compares the teacher with what it was in the warm-up " +
    "(H_warm): it shuts below τ, since a teacher who is sure of everything tells nothing. Shaded: steps with the gate open, darker where it was open in several seeds."),
  phases: section("phases", "Time by phase", "Mean seconds of a step."),
  samples: section("samples", "Responses side by side", "The same prompt as different runs answered it, from rollouts/ (record.rollouts_every)."),
  differences: section("differences", "Configuration", "Keys that differ between these runs."),
  warnings: section("warnings", "Warnings", ""),
  others: section("others", "Every other metric", ""),
};
const grid = () => element("div", {class: "grid"});

// Elements that are kept between updates.
const curveGrid = grid(), entropyGrid = grid(), evaluationGrid = grid(), otherGrid = grid();
parts.curves.body.append(curveGrid);
parts.entropy.body.append(entropyGrid, element("div", {id: "gate"}));
const summary = element("div", {}), best = element("div", {}), last = element("div", {});
const benchChoice = element("select", {id: "bench", onchange: () => draw()});
parts.evaluation.body.append(summary, element("p", {class: "note"}, "Each run at the evaluation with the highest average (the first of several); accuracy in percent with its 95 % interval."), best,
  element("label", {class: "choices"}, "benchmark in the charts ", benchChoice), evaluationGrid,
  element("details", {}, element("summary", {}, "Lengths and failures at each run's last evaluation"), last));
const phaseFigure = element("figure", {}, element("div", {class: "plot bars"}, element("canvas", {role: "img", "aria-label": "time by phase"})), element("div", {class: "table"}));
parts.phases.body.append(phaseFigure);
const stepChoice = element("select", {id: "step", onchange: event => openSamples(Number(event.target.value), sampleBox)});
const sampleBox = element("div", {id: "sample-box"});
parts.samples.body.append(element("label", {class: "choices"}, "step ", stepChoice), sampleBox);
const otherDetails = element("details", {id: "other-details", ontoggle: () => draw()}, element("summary", {}, "Show"), otherGrid);
parts.others.body.append(otherDetails);

const kNotOthers = new Set([...kCurves.map(one => one.metric), "antisd/gate", "antisd/gate_signal", "antisd/h_warm", "antisd/tau", "actor/entropy", "teacher/entropy_median"]);

function setOptions(select, options) {
  const key = JSON.stringify(options);
  if (select.dataset.key === key) return false;
  const before = select.value;
  select.replaceChildren(...options.map(([value, text]) => element("option", {value, selected: value === before}, text)));
  select.dataset.key = key;
  return true;
}

function drawEvaluation() {
  const names = benchNames();
  show(parts.evaluation, names.length > 0);
  if (!names.length) return;
  setOptions(benchChoice, [["", "average"], ...names.map(name => [name, name])]);
  const comparison = comparisonTable();
  summary.replaceChildren(...(comparison ? [comparison] : []));
  best.replaceChildren(evaluationTable(names));
  last.replaceChildren(evaluationDetails(names));
  const bench = benchChoice.value;
  fillGrid(evaluationGrid, [evaluationSpec(bench), ...(bench ? [bench] : names).slice(0, 6).map(passSpec)]);
}

function drawSampleSteps() {
  const steps = sampleSteps().filter(([step]) => live || (embedded.samples || {})[step]);
  show(parts.samples, steps.length > 0);
  const changed = setOptions(stepChoice, steps.map(([step, runs]) => [String(step), `${step} (${runs} runs)`]));
  if (changed && steps.length && samples.step === null) {
    stepChoice.value = String(steps[steps.length - 1][0]);
    openSamples(Number(stepChoice.value), sampleBox);
  }
}

function draw() {
  const series = shownSeries(), columns = new Set(series.flatMap(one => one.runs.flatMap(run => [...run.rows.columns.keys()])));
  parts.runs.body.replaceChildren(series.length ? runsTable() : element("p", {class: "note"}, "No run here has this name, or none has begun."));
  fillGrid(curveGrid, kCurves.filter(one => columns.has(one.metric)).map(one => metricSpec(one.title, one.metric, one.words, one.percent)));
  const entropies = drawnSeries().filter(one => one.runs.some(run => run.rows.columns.has("actor/entropy")));
  show(parts.entropy, entropies.length > 0);
  fillGrid(entropyGrid, entropies.map(entropySpec));
  document.getElementById("gate").replaceChildren(...gateList());
  drawEvaluation();
  const timed = series.some(one => secondsOf(one.runs, "step") !== null);
  show(parts.phases, timed);
  if (timed) drawPhases(phaseFigure);
  drawSampleSteps();
  show(parts.differences, shownRuns().length > 1);
  parts.differences.body.replaceChildren(differencesTable());
  parts.warnings.body.replaceChildren(...[warningsList()].flat());
  const others = [...columns].filter(name => !kNotOthers.has(name)).sort();
  show(parts.others, others.length > 0);
  fillGrid(otherGrid, otherDetails.open ? others.map(name => metricSpec(name, name, "", false)) : []);
  if (series.length > kMaxDrawn) status.textContent = `${series.length} series, ${kMaxDrawn} of them drawn: the filter chooses`;
  markStale();
}

function toggleSeries(name) {
  if (!state.series.some(series => series.name === name)) return;
  if (!state.hidden.delete(name)) state.hidden.add(name);
  draw();
  status.textContent = state.hidden.size ? "hidden: " + [...state.hidden].join(", ") : "";
}
status.addEventListener("click", () => { state.hidden.clear(); status.textContent = ""; draw(); });

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
addEventListener("beforeprint", () => {
  document.documentElement.classList.add("printing");
  drawAll();
  if (phaseChart) drawPhases(phaseFigure);
});
addEventListener("afterprint", () => { document.documentElement.classList.remove("printing"); draw(); });

const kPollMs = 2000;
async function poll() {
  try {
    const answer = await fetch(`/api/update?since=${state.version}&server=${encodeURIComponent(state.server)}`);
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
    const update = await answer.json();
    const isNews = update.reset || update.set || update.runs.length > 0;
    applyUpdate(update);
    if (isNews) draw();
    status.textContent = status.textContent.startsWith("No answer") ? "" : status.textContent;
  } catch (error) {
    status.textContent = "No answer from the dashboard; trying again. What is shown may be old.";
  }
  setTimeout(poll, document.hidden ? 5 * kPollMs : kPollMs);
}

Chart.defaults.font.family = "system-ui, sans-serif";
window.antisd = {state, overSeeds, applyUpdate, draw, drawAll, charts};  // for tests
if (live) {
  poll();
} else {
  applyUpdate(embedded.update);
  draw();
}
