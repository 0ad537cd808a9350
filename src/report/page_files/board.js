// Figures in a grid. A hidden figure is drawn when it becomes visible or before printing.
const charts = new Map();  // canvas's figure -> {spec, chart, stale, inSight}
const sight = new IntersectionObserver(entries => {
  for (const entry of entries) {
    const item = charts.get(entry.target);
    if (!item) continue;
    item.inSight = entry.isIntersecting;
    if (item.inSight && item.stale) drawChart(item);
  }
}, {rootMargin: "300px"});

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter(child => child !== null && child !== undefined));
  return node;
}

function figureFor(spec) {
  const canvas = element("canvas", {role: "img", "aria-label": spec.title});
  const figure = element("figure", {}, element("h3", {}, spec.title), element("figcaption", {}, spec.words || ""),
                         element("div", {class: "plot"}, canvas));
  const item = {spec, canvas, figure, chart: null, stale: true, inSight: false};
  charts.set(figure, item);
  sight.observe(figure);
  return figure;
}

function drawChart(item) {
  item.stale = false;
  const datasets = item.spec.datasets();
  if (item.chart) {
    item.chart.data.datasets = datasets;
    item.chart.options = chartOptions(item.spec);
    item.chart.update("none");
  } else {
    item.chart = new Chart(item.canvas, {type: "line", data: {datasets}, options: chartOptions(item.spec),
                                         plugins: [gatePlugin, whiskerPlugin]});
  }
}

function markStale() {
  for (const [figure, item] of charts) {
    if (!figure.isConnected) {
      if (item.chart) item.chart.destroy();
      sight.unobserve(figure);
      charts.delete(figure);
      continue;
    }
    item.stale = true;
    if (item.inSight) drawChart(item);
  }
}
function drawAll() {
  for (const item of charts.values()) drawChart(item);
}

// Fills a grid with one figure per spec; existing figures of the same title stay, so that nothing
// moves.
function fillGrid(grid, specs) {
  const old = new Map([...grid.children].map(figure => [charts.get(figure) ? charts.get(figure).spec.title : "", figure]));
  const figures = specs.map(spec => {
    const figure = old.get(spec.title);
    if (!figure) return figureFor(spec);
    charts.get(figure).spec = spec;
    return figure;
  });
  if (figures.length !== grid.children.length || figures.some((figure, i) => grid.children[i] !== figure))
    grid.replaceChildren(...figures);
}

function table(head, rows, attributes = {}) {
  const cell = (tag, content) => {
    const isText = content && content.text !== undefined;
    return element(tag, isText ? {class: "text"} : {}, isText ? content.text : content);
  };
  return element("div", {class: "scroll"}, element("table", attributes,
    element("thead", {}, element("tr", {}, head.map(content => cell("th", content)))),
    element("tbody", {}, rows.map(row => element("tr", {}, row.map(content => cell("td", content)))))));
}
const words = text => ({text});

// A line as the charts draw it, for tables and lists.
function keyOf(series) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "key");
  svg.setAttribute("viewBox", "0 0 44 10");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
  const attributes = {x1: 0, x2: 44, y1: 5, y2: 5, stroke: `var(--s${series.index % 8})`, "stroke-width": 3,
                      "stroke-dasharray": kDashes[series.index % kDashes.length].join(" ")};
  for (const [name, value] of Object.entries(attributes)) line.setAttribute(name, value);
  svg.append(line);
  return svg;
}
