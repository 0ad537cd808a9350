// Charts: their descriptions, their metrics, and how they are drawn.
const kDashes = [[], [9, 4], [2, 3], [12, 3, 2, 3], [5, 5], [14, 5], [4, 2, 1, 2], [1, 4]];
const kPoints = ["circle", "triangle", "rect", "rectRot", "star", "cross", "crossRot", "dash"];
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const seriesColour = index => colour("--s" + index % 8);
const faded = (hex, share) => hex + Math.round(255 * share).toString(16).padStart(2, "0");
const fullHex = hex => hex.length === 4 ? "#" + [...hex.slice(1)].map(c => c + c).join("") : hex;

const kCurves = [
  {title: "Reward in training", metric: "critic/rewards/mean", percent: true,
   words: "Share of a step's responses that were right. Higher is better; a fall while responses grow longer often means truncation."},
  {title: "Reward of responses that ended", metric: "reward/non_truncated", percent: true,
   words: "The same over the responses that were not cut off at the length limit: what the model gets right when it comes to an answer."},
  {title: "Response length", metric: "response_length/mean", words: "Mean tokens of a response."},
  {title: "Truncated responses", metric: "response_length/clip_ratio", percent: true,
   words: "Share of responses cut off at the length limit. They count as wrong."},
  {title: "Mean of u", metric: "antisd/u/mean", words:
   "u is a token's log-probability with the solution in view minus without it. Above 0: the solution makes what was written likelier."},
  {title: "Spread of u", metric: "antisd/u/std", words: "Standard deviation of u over tokens. Near 0 the teacher tells nothing."},
  {title: "Tokens with u below 0", metric: "antisd/u/frac_neg", percent: true,
   words: "Share of tokens that the teacher would rather not have written: AntiSD gives these more advantage."},
  {title: "Weight of the term", metric: "antisd/lambda", words: "λ, the weight of the token term in the advantage. 0 while the gate is shut."},
  {title: "Share of the term", metric: "antisd/term_ratio", words: "Size of what the term changes against the size of the advantage without it."},
  {title: "Gradient norm", metric: "actor/grad_norm", words: "Norm of the gradient before clipping. Spikes that grow are a warning."},
];

// Rectangles behind the curves where the gate was open.
const gatePlugin = {id: "gate", beforeDatasetsDraw(chart, args, options) {
  const {left, right, top, bottom} = chart.chartArea;
  chart.ctx.save();
  chart.ctx.fillStyle = faded(fullHex(colour("--good")), .14);
  for (const span of options.spans || []) {
    const from = Math.max(left, chart.scales.x.getPixelForValue(span.from - .5));
    const to = Math.min(right, chart.scales.x.getPixelForValue(span.to - .5));
    if (to > from) chart.ctx.fillRect(from, top, to - from, bottom - top);
  }
  chart.ctx.restore();
}};

// Vertical lines from `low` to `high` of a point.
const whiskerPlugin = {id: "whiskers", afterDatasetsDraw(chart) {
  chart.data.datasets.forEach(set => {
    if (!set.whiskers) return;
    chart.ctx.save();
    chart.ctx.strokeStyle = set.borderColor;
    for (const point of set.data) {
      if (!isNumber(point.low) || !isNumber(point.high)) continue;
      const x = chart.scales.x.getPixelForValue(point.x);
      chart.ctx.beginPath();
      chart.ctx.moveTo(x, chart.scales.y.getPixelForValue(point.low));
      chart.ctx.lineTo(x, chart.scales.y.getPixelForValue(point.high));
      chart.ctx.stroke();
    }
    chart.ctx.restore();
  });
}};

function chartOptions(spec) {
  const text = colour("--text"), line = colour("--line");
  const axis = title => ({type: "linear", grid: {color: line, borderColor: line}, ticks: {color: text, maxRotation: 0},
    title: {display: !!title, text: title, color: text}});
  const format = value => spec.percent ? percent(value) + " %" : shortNumber(value);
  const x = Object.assign(axis(spec.xTitle || "step"), spec.logX ? {type: "logarithmic"} : {ticks: {color: text, maxRotation: 0, precision: 0}});
  const y = Object.assign(axis(""), {ticks: {color: text, callback: format}});
  return {animation: false, parsing: false, normalized: true, responsive: true, maintainAspectRatio: false, spanGaps: true,
    interaction: {mode: "nearest", axis: "x", intersect: false}, scales: {x, y},
    plugins: {gate: {spans: spec.spans || []},
      legend: {position: "bottom", onClick: (event, item) => toggleSeries(item.text),
        labels: {color: text, usePointStyle: true, boxWidth: 26, filter: (item, data) => !data.datasets[item.datasetIndex].aux,
          generateLabels: chart => chart.data.datasets.map((set, datasetIndex) => ({text: set.label, fontColor: text, datasetIndex,
            strokeStyle: set.borderColor, lineDash: set.borderDash || [], lineWidth: 2.4, pointStyle: "line"}))}},
      tooltip: {filter: item => !item.dataset.aux, callbacks: {
        title: items => items.length ? (spec.xTitle || "step") + " " + shortNumber(items[0].raw.x) : "",
        label: item => item.dataset.label + ": " + format(item.raw.y) +
          (isNumber(item.raw.low) ? " (" + format(item.raw.low) + " to " + format(item.raw.high) + ")" : "")}}}};
}

function curve(label, points, tone, dash, more = {}) {
  return Object.assign({label, data: points, borderColor: tone, backgroundColor: tone, borderDash: dash, borderWidth: 2.2,
    pointRadius: points.length === 1 ? 3 : 0, pointHitRadius: 6, order: 1}, more);
}
const faintCurve = (points, tone) => curve("", points, faded(fullHex(tone), .28), [], {aux: true, borderWidth: 1, order: 3});

// Raw faint and mean bold for one run; mean and band for several seeds.
function seriesCurves(series, metric, label, tone, dash) {
  const runs = series.runs.filter(run => run.rows.columns.has(metric));
  if (!runs.length) return [];
  if (runs.length === 1) {
    const points = meanLine(runs[0], metric);
    return points.length ? [faintCurve(rawLine(runs[0], metric), tone), curve(label, points, tone, dash)] : [];
  }
  const points = overSeeds(runs, metric);
  const edge = key => points.map(point => ({x: point.x, y: point[key]}));
  const band = {aux: true, borderWidth: 0, order: 4};
  return [curve("", edge("low"), tone, [], band),
    curve("", edge("high"), tone, [], Object.assign({}, band, {fill: "-1", backgroundColor: faded(fullHex(tone), .18)})),
    curve(label, points, tone, dash)];
}

const metricSpec = (title, metric, words, isPercent) => ({title, words, percent: isPercent, datasets: () => drawnSeries().flatMap(series =>
  seriesCurves(series, metric, series.name, seriesColour(series.index), kDashes[series.index % kDashes.length]))});

// Teacher and student of one series, with the gate's thresholds and spans.
function entropySpec(series) {
  const signal = series.runs.some(run => run.rows.columns.has("antisd/gate_signal")) ? "antisd/gate_signal" : "teacher/entropy_median";
  const first = series.runs[0];
  const threshold = (label, metric, dash) => {
    const points = rawLine(first, metric);
    return points.length ? [curve(label, points, colour("--faint"), dash, {borderWidth: 1.5})] : [];
  };
  return {title: series.name, words: "", spans: series.runs.flatMap(openSpans), datasets: () => [
    ...seriesCurves(series, signal, "teacher", seriesColour(1), []),
    ...seriesCurves(series, "actor/entropy", "student", seriesColour(0), [9, 4]),
    ...threshold("H_warm", "antisd/h_warm", [2, 3]), ...threshold("τ (gate shuts below)", "antisd/tau", [10, 3, 2, 3])]};
}

// Points of one benchmark, or of the average, over steps; several seeds as their mean and range.
function evaluationPoints(series, bench) {
  const bySteps = new Map();
  for (const run of series.runs) for (const evaluation of run.facts.evaluations) {
    const value = bench ? (evaluation.benches[bench] || {}).avg : averageOf(evaluation);
    const interval = bench ? (evaluation.benches[bench] || {}).avg_interval : evaluation.average_interval;
    if (!isNumber(value)) continue;
    if (!bySteps.has(evaluation.step)) bySteps.set(evaluation.step, []);
    bySteps.get(evaluation.step).push({value, interval});
  }
  return [...bySteps.entries()].sort((a, b) => a[0] - b[0]).map(([x, items]) => {
    const values = items.map(item => item.value), alone = items.length === 1 && items[0].interval;
    return {x, y: mean(values), low: alone ? alone[0] : Math.min(...values), high: alone ? alone[1] : Math.max(...values)};
  });
}
function averageOf(evaluation) {
  if (isNumber(evaluation.average)) return evaluation.average;
  return mean(Object.values(evaluation.benches).map(bench => bench.avg).filter(isNumber));
}
const pointStyle = index => ({pointRadius: 4, pointStyle: kPoints[index % kPoints.length], whiskers: true});
const evaluationSpec = bench => ({title: bench || "Average over benchmarks", percent: true,
  words: "Accuracy (avg@n) of each evaluation. Whiskers: the 95 % interval of one run, or the range over seeds.",
  datasets: () => drawnSeries().map(series => curve(series.name, evaluationPoints(series, bench), seriesColour(series.index),
    kDashes[series.index % kDashes.length], pointStyle(series.index))).filter(set => set.data.length)});

function passPoints(series, bench) {
  const byK = new Map();
  for (const run of series.runs) {
    const peak = run.facts.evaluations.find(evaluation => evaluation.step === run.facts.peak);
    for (const [k, value] of Object.entries(((peak || {benches: {}}).benches[bench] || {}).pass || {})) {
      if (!(Number(k) >= 1)) continue;
      if (!byK.has(Number(k))) byK.set(Number(k), []);
      byK.get(Number(k)).push(value);
    }
  }
  return [...byK.entries()].sort((a, b) => a[0] - b[0]).map(([x, values]) => ({x, y: mean(values)}));
}
const passSpec = bench => ({title: "pass@k, " + bench, percent: true, xTitle: "k", logX: true,
  words: "Share of problems with at least one right response among k, at each run's best evaluation.",
  datasets: () => drawnSeries().map(series => curve(series.name, passPoints(series, bench), seriesColour(series.index),
    kDashes[series.index % kDashes.length], {pointRadius: 3, pointStyle: kPoints[series.index % kPoints.length]})).filter(set => set.data.length)});
