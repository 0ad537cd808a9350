// The page's data about the runs, and how updates change it. Names come from files, so they are
// used only as keys of Maps.
const state = {version: 0, server: "", order: [], runs: new Map(), series: [], differences: [], comparison: null, filter: "", hidden: new Set()};
const kMaxDrawn = 12;  // series in one chart

function applyUpdate(update) {
  if (update.reset) state.runs.clear();
  state.version = update.version;
  state.server = update.server || "";
  for (const change of update.runs) {
    let run = state.runs.get(change.id);
    if (!run) {
      run = {id: change.id, facts: {name: change.id, run: {}, warnings: [], notes: [], gate: [], evaluations: [], dumps: []},
             rows: {width: 1, last: 0, written: 0, columns: new Map(), times: new Map()}};
      state.runs.set(change.id, run);
    }
    if (change.facts) run.facts = change.facts;
    if (change.rows) run.rows = joinRows(run.rows, change.rows);
  }
  if (!update.set) return;
  Object.assign(state, {order: update.set.order, series: update.set.series, differences: update.set.differences,
    comparison: update.set.comparison});
  for (const id of [...state.runs.keys()]) if (!state.order.includes(id)) state.runs.delete(id);
}

// Buckets before `from` stay, the others come from the update.
function joinRows(old, rows) {
  const columns = new Map();
  for (const [name, tail] of Object.entries(rows.columns)) {
    const before = rows.from > 0 ? old.columns.get(name) : undefined;
    columns.set(name, tail.map((values, part) => {
      if (values === null) return null;
      const head = before && before[part] ? before[part].slice(0, rows.from) : [];
      while (head.length < rows.from) head.push(null);
      return head.concat(values);
    }));
  }
  return {width: rows.width, last: rows.last, written: rows.written, columns, times: new Map(Object.entries(rows.times))};
}

// The 20-step mean at the end of each bucket.
function meanLine(run, name) {
  const column = run.rows.columns.get(name);
  if (!column) return [];
  const points = [];
  column[2].forEach((y, b) => {
    if (y !== null) points.push({x: Math.min((b + 1) * run.rows.width - 1, run.rows.last), y});
  });
  return points;
}

// Raw values: the smallest and the largest of each bucket, in their order.
function rawLine(run, name) {
  const column = run.rows.columns.get(name);
  if (!column) return [];
  const width = run.rows.width, points = [];
  column[0].forEach((y, b) => {
    if (y === null) return;
    points.push({x: width === 1 ? b : (b + .25) * width, y});
    if (column[1] && column[1][b] !== null) points.push({x: (b + .75) * width, y: column[1][b]});
  });
  return points;
}

// Mean, minimum and maximum over seeds of their 20-step means, on the widest buckets among them:
// widths are powers of two, so each run has a bucket that ends there.
function overSeeds(runs, name) {
  const width = Math.max(...runs.map(run => run.rows.width)), last = Math.max(...runs.map(run => run.rows.last));
  const points = [];
  for (let b = 0; b * width <= last; ++b) {
    const values = [];
    for (const run of runs) {
      if (b * width > run.rows.last) continue;
      const mean = run.rows.columns.get(name)[2];
      const value = mean[Math.min((b + 1) * width / run.rows.width - 1, mean.length - 1)];
      if (value !== null && value !== undefined) values.push(value);
    }
    if (!values.length) continue;
    points.push({x: Math.min((b + 1) * width - 1, last), y: values.reduce((a, v) => a + v, 0) / values.length,
                 low: Math.min(...values), high: Math.max(...values), seeds: values.length});
  }
  return points;
}

function matches(run) {
  const name = run.facts.name.toLowerCase();
  return state.filter.toLowerCase().split(/\s+/).every(word => name.includes(word));
}

// Series with the runs that pass the filter, each with its index in the palette.
function shownSeries() {
  return state.series.map((series, index) => ({name: series.name, index,
    runs: series.runs.map(id => state.runs.get(id)).filter(run => run && matches(run))}))
    .filter(series => series.runs.length > 0);
}
const drawnSeries = () => shownSeries().filter(series => !state.hidden.has(series.name)).slice(0, kMaxDrawn);
const shownRuns = () => shownSeries().flatMap(series => series.runs);

// Steps between which the gate was open.
function openSpans(run) {
  const spans = [];
  for (const [step, open] of run.facts.gate) {
    if (open) spans.push({from: step, to: run.rows.last});
    else if (spans.length) spans[spans.length - 1].to = step;
  }
  return spans;
}

const mean = values => values.length ? values.reduce((a, v) => a + v, 0) / values.length : null;
const isNumber = value => typeof value === "number" && isFinite(value);
function shortNumber(value) {
  if (!isNumber(value)) return "–";
  if (Number.isInteger(value)) return String(value);
  return String(Number(value.toPrecision(4)));
}
const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
const percent = value => isNumber(value) ? (100 * value).toFixed(1) : "–";
