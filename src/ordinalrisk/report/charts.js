// What each chart shows: for a stop of the slider the traces and the layout that Plotly draws.

const report = JSON.parse(document.getElementById("data").textContent);
const { classes, classRows, stops } = report;
const K = classes.length;

const count = (number) => number.toLocaleString("en-US");
const percent = (share, decimals = 2) => `${(100 * share).toFixed(decimals)} %`;
const loss = (value) => value.toFixed(report.lossDecimals);
const size = (value) => value.toFixed(2);
const span = ([value, low, high], text) => `${text(value)} (${text(low)} to ${text(high)})`;
const rowsOf = (number) => (number === 1 ? "1 row" : `${count(number)} rows`);

const sharesOf = (counts) => counts.map((number) => number / counts.reduce((sum, each) => sum + each, 0));
const probabilityBin = (i) => `${percent(i / 16)} to ${percent((i + 1) / 16)}`;

// Plotly reads tags and entities in all text, so text from the data goes through here.
const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/\s+/g, " ");

function shortened(text, length) {
  const letters = Array.from(text);
  const end = Math.floor(length / 3); // names often differ in their last letters only
  return letters.length > length ? `${letters.slice(0, length - end - 1).join("")}…${letters.slice(-end).join("")}` : text;
}

const THEMES = {
  light: { ink: "#1d2329", muted: "#57606a", grid: "#e3e7ec", page: "#ffffff", main: "#0072b2", band: "rgba(0,114,178,.16)" },
  dark: { ink: "#e8ecf0", muted: "#a9b3bd", grid: "#333c46", page: "#1a2027", main: "#56b4e9", band: "rgba(86,180,233,.2)" },
};
const VERMILLION = "#d55e00";
const ORANGE = "#e69f00";
// Each rule has its own colour, dash and symbol, so that none is needed alone.
const RULE_STYLES = [
  { dash: "solid", symbol: "circle" },
  { color: VERMILLION, dash: "dash", symbol: "square" },
  { color: "#009e73", dash: "dot", symbol: "triangle-up" },
  { color: "#cc79a7", dash: "dashdot", symbol: "diamond" },
  { color: ORANGE, dash: "longdash", symbol: "x" },
];

const alphas = stops.map((stop) => stop.value);
const last = alphas.length - 1;
const alphaRange = [0, last > 0 ? alphas[last] * 1.03 : alphas[0] * 2];

const axis = (theme, { title, ...more }) => ({
  gridcolor: theme.grid, linecolor: theme.grid, zeroline: false, fixedrange: true, automargin: true, tickangle: 0, ticks: "",
  title: { text: title, standoff: 10, font: { size: 13, color: theme.muted } }, ...more,
});

function layoutOf(theme, { xaxis, yaxis, ...more }) {
  return {
    autosize: false, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif', size: 13, color: theme.ink },
    margin: { l: 48, r: 22, t: 12, b: 44 }, showlegend: false, dragmode: false, hovermode: "closest",
    hoverlabel: { bgcolor: theme.page, bordercolor: theme.muted, font: { color: theme.ink }, align: "left" },
    legend: { orientation: "h", traceorder: "normal", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom", font: { size: 12.5 }, itemclick: false, itemdoubleclick: false },
    xaxis: axis(theme, xaxis), yaxis: axis(theme, yaxis), ...more,
  };
}

const currentAlphaLine = (theme, stop) => ({
  type: "line", xref: "x", yref: "paper", x0: stop.value, x1: stop.value, y0: 0, y1: 1,
  line: { color: theme.muted, width: 1, dash: "dot" }, layer: "below",
});

const fewTicks = (width) => (width < 420 ? 4 : 6);
const alphaAxis = (width) => ({ range: alphaRange, title: report.alphaWord, nticks: fewTicks(width) });

// --- curves over alpha

function curve(theme, stop, values, text, name) {
  const texts = values.map((value, i) => `${report.alphaWord} ${plain(stops[i].alpha)}<br>${name} ${span(value, text)}`);
  const line = { type: "scatter", mode: last === 0 ? "markers" : report.joined ? "lines" : "lines+markers", x: alphas, hoverinfo: "skip" };
  const edge = (part) => ({ ...line, mode: "lines", y: values.map((value) => value[part]), line: { width: 0 } });
  const here = stops.indexOf(stop);
  return [
    edge(1),
    { ...edge(2), fill: "tonexty", fillcolor: theme.band },
    { ...line, y: values.map((value) => value[0]), line: { color: theme.main, width: report.joined ? 2.5 : 1, dash: report.joined ? "solid" : "dot" }, marker: { color: theme.main, size: 7 }, hoverinfo: "text", hovertext: texts },
    { ...line, mode: "markers", x: [stop.value], y: [values[here][0]], hoverinfo: "text", hovertext: [texts[here]], cliponaxis: false,
      marker: { symbol: "diamond", size: 13, color: VERMILLION, line: { color: theme.page, width: 1.5 } } },
  ];
}

function riskChart(stop, theme, width) {
  const values = stops.map((each) => each.risk);
  const end = alphaRange[1];
  const diagonal = {
    type: "scatter", mode: "lines", x: [0, end], y: [0, end], hoverinfo: "skip",
    line: { color: theme.ink, width: 1.5, dash: "dash" },
  };
  const comparable = report.alphaWord === "alpha"; // a factor on several alphas is no loss
  const highest = Math.max(comparable ? end : 0, ...values.map((value) => value[2]));
  return {
    traces: [...curve(theme, stop, values, loss, "realised risk"), ...(comparable ? [diagonal] : [])],
    layout: layoutOf(theme, {
      xaxis: alphaAxis(width), shapes: [currentAlphaLine(theme, stop)],
      yaxis: { title: "realised risk", range: [0, 1.05 * (highest || 1)] },
    }),
  };
}

function sizeChart(stop, theme, width) {
  return {
    traces: curve(theme, stop, stops.map((each) => each.mean_size), size, "mean size"),
    layout: layoutOf(theme, {
      xaxis: alphaAxis(width), shapes: [currentAlphaLine(theme, stop)],
      yaxis: { title: "labels in a set", range: sizeRange(stops.map((each) => each.mean_size[2])) },
    }),
  };
}

// Every set has at least one label, so the axis starts there.
function sizeRange(sizes) {
  const above = Math.min(K - 1, Math.max(0.2, 1.1 * (Math.max(1, ...sizes) - 1)));
  return [1 - 0.03 * above, 1 + 1.04 * above];
}

function rulesChart(stop, theme, width) {
  const { names, mean_size: sizes } = report.rules;
  const every = Math.max(12, Math.ceil(stops.length / 6));
  const here = stops.indexOf(stop);
  const traces = names.flatMap((name, r) => {
    const values = sizes[r] ?? alphas.map(() => null);
    const style = RULE_STYLES[r % RULE_STYLES.length];
    const color = style.color ?? theme.main;
    const texts = values.map((value, i) => `${plain(name)}<br>alpha ${plain(stops[i].alpha)}<br>mean size ${value === null ? "-" : size(value)}`);
    const line = { color, width: 2, dash: style.dash };
    const shared = { type: "scatter", hoverinfo: "text", name: plain(name), legendgroup: `rule ${r}`, line };
    const some = alphas.map((_, i) => ((i + 3 * r) % every === 0 ? 8 : 0)); // curves often lie on each other: each gets a turn
    return [
      { ...shared, mode: "lines+markers", x: alphas, y: values, hovertext: texts, marker: { symbol: style.symbol, color, size: some, opacity: 1, line: { width: 0 } }, showlegend: false },
      { ...shared, mode: "lines+markers", x: [stop.value], y: [values[here]], hovertext: [texts[here]],
        marker: { symbol: `${style.symbol}-open`, color, size: 9 + 3 * r, line: { width: 2 } } },
    ];
  });
  const known = sizes.flatMap((values) => values ?? []).filter((value) => value !== null);
  return {
    traces,
    layout: layoutOf(theme, {
      showlegend: true, xaxis: alphaAxis(width), shapes: [currentAlphaLine(theme, stop)],
      yaxis: { title: "labels in a set", range: sizeRange(known) },
    }),
  };
}

// --- bars

function barChart(theme, { x, counts, names, xaxis }) {
  return {
    traces: [{
      type: "bar", x, y: counts.map((number) => number / report.rows), hoverinfo: "text",
      hovertext: counts.map((number, i) => `${names[i]}<br>${rowsOf(number)} (${percent(number / report.rows)})`),
      marker: { color: theme.main }, width: 0.8 * (x.length > 1 ? x[1] - x[0] : 1),
    }],
    layout: layoutOf(theme, { xaxis, yaxis: { title: "share of rows", tickformat: ".0%", rangemode: "tozero", nticks: 6 } }),
  };
}

function sizesChart(stop, theme) {
  const x = stop.sizes.map((_, i) => i + 1);
  const names = x.map((labels) => (labels === 1 ? "1 label" : `${labels} labels`));
  const xaxis = { title: "labels in a set", range: [0.4, K + 0.6], dtick: Math.ceil(K / 12), tick0: 1, showgrid: false };
  return barChart(theme, { x, counts: stop.sizes, names, xaxis });
}

const middleName = (i) => (i % 2 === 0 ? classes[i / 2] : `between ${classes[(i - 1) / 2]} and ${classes[(i + 1) / 2]}`);

function centroidsChart(stop, theme, width) {
  const x = stop.centroids.map((_, i) => i / 2);
  const names = x.map((_, i) => plain(middleName(i)));
  const xaxis = { ...classTicksBelow((width - 80) / K, width), title: "middle of the set", range: [-0.6, K - 0.4], showgrid: false };
  return barChart(theme, { x, counts: stop.centroids, names, xaxis });
}

const nameLength = (width) => (width < 420 ? 13 : 16);
const longestName = Math.max(...classes.map((name) => Array.from(name).length));

// Ticks at names, as many as there is room for at so many pixels each.
function nameTicks(names, pixels, length, more = () => "") {
  const step = Math.max(1, Math.ceil(15 / pixels));
  const shown = names.map((_, k) => k).filter((k) => k % step === 0);
  return { tickmode: "array", tickvals: shown, ticktext: shown.map((k) => plain(shortened(names[k], length)) + more(k)) };
}

const classTicks = (pixels, length, more) => nameTicks(classes, pixels, length, more);

// Below a chart names lie flat if they fit, and lean or stand if they do not.
function classTicksBelow(pixels, width) {
  const flat = 8 * Math.min(longestName, nameLength(width)) < pixels;
  return { ...classTicks(pixels, flat ? nameLength(width) : Math.min(13, nameLength(width))), tickangle: flat ? 0 : pixels > 36 ? -45 : -90 };
}

// --- one line for each class

const PAGE_HEIGHT = 860; // what a chart may take of a printed page

function heightOf(lines, onPaper) {
  const height = 96 + Math.max(lines, 3) * (onPaper ? 18 : lines > 30 ? 20 : 28);
  return onPaper ? Math.min(height, PAGE_HEIGHT) : height;
}

const classHeight = (width, onPaper) => heightOf(K, onPaper);

// A dot and its interval for each name; `shapes` lie behind them, `marker` distinguishes dots.
function dotChart(theme, width, onPaper, { names, rows, values, text, quantity, shapes, xaxis, title, length = nameLength(width), marker = () => ({}), more = () => "" }) {
  const known = names.map((_, k) => k).filter((k) => values[k] !== null);
  const at = (part) => known.map((k) => values[k][part]);
  const points = {
    type: "scatter", mode: "markers", x: at(0), y: known, hoverinfo: "text",
    hovertext: known.map((k) => `${plain(names[k])}: ${rowsOf(rows[k])}<br>${quantity} ${span(values[k], text)}${more(k)}`),
    marker: { color: theme.main, size: 9, ...marker(known) },
    error_x: {
      type: "data", symmetric: false, color: theme.main, thickness: 1.6, width: 4,
      array: known.map((k) => values[k][2] - values[k][0]), arrayminus: known.map((k) => values[k][0] - values[k][1]),
    },
  };
  const missing = names.map((_, k) => k).filter((k) => values[k] === null);
  const notes = missing.map((k) => ({ xref: "paper", x: 0.5, y: k, text: "no rows", showarrow: false, font: { color: theme.muted } }));
  return {
    traces: [points],
    layout: layoutOf(theme, {
      shapes, annotations: notes, xaxis,
      yaxis: {
        ...nameTicks(names, onPaper ? (PAGE_HEIGHT - 96) / names.length : 20, length, (k) => ` (${count(rows[k])})`),
        range: [names.length - 0.5, -0.5], title,
      },
    }),
  };
}

const dashedLine = (theme, x, ends) => ({ type: "line", xref: "x", x0: x, x1: x, ...ends, line: { color: theme.ink, width: 1.5, dash: "dash" } });

function classChart(theme, width, onPaper, { reference, ...more }) {
  const shapes = [dashedLine(theme, reference, { yref: "paper", y0: 0, y1: 1 })];
  return dotChart(theme, width, onPaper, { names: classes, rows: classRows, shapes, title: "true class (rows)", ...more });
}

// --- one line for each group or class with a guarantee of its own

const MARKS = { agrees: { symbol: "circle" }, chance: { symbol: "diamond", color: ORANGE }, disagrees: { symbol: "triangle-up", color: VERMILLION }, nothing: { symbol: "square-open" } };

function strataChart(stop, theme, width, onPaper) {
  const { names, rows, title } = report.strata;
  const parts = stop.strata;
  const end = roundRange(Math.max(...parts.map((part) => part.value), ...parts.map((part) => part.risk?.[2] ?? 0)), report.bound);
  const marks = (known) => known.map((k) => MARKS[parts[k].verdict]);
  return dotChart(theme, width, onPaper, {
    names, rows, length: width < 600 ? nameLength(width) : 36, values: parts.map((part) => part.risk), text: loss, quantity: "realised risk", title: `${title} (rows)`,
    shapes: parts.flatMap((part, k) => (part.exempt ? [] : [dashedLine(theme, part.value, { yref: "y", y0: k - 0.42, y1: k + 0.42 })])),
    xaxis: { range: [-0.02 * end, 1.04 * end], nticks: fewTicks(width), title: "realised risk" },
    more: (k) => `<br>${parts[k].exempt ? "" : `alpha ${plain(parts[k].alpha)}: `}${plain(parts[k].word)}`,
    marker: (known) => ({
      size: 11, symbol: marks(known).map((mark) => mark.symbol),
      color: known.map((k) => MARKS[parts[k].verdict].color ?? (parts[k].verdict === "nothing" ? theme.muted : theme.main)),
    }),
  });
}

// The smallest of a few round ranges that holds the numbers, so that the axis seldom moves with the slider.
const roundRange = (largest, whole) => [0.02, 0.05, 0.1, 0.2, 0.5, 1].map((part) => part * whole).find((end) => largest <= end) ?? whole;

function classCoverageChart(stop, theme, width, onPaper) {
  const lows = stop.class_coverage.map((value) => value?.[1] ?? 1);
  const shown = roundRange(1 - Math.min(stop.coverage[0], ...lows), 1);
  return classChart(theme, width, onPaper, {
    values: stop.class_coverage, text: percent, quantity: "coverage", reference: stop.coverage[0],
    xaxis: { range: [1 - 1.02 * shown, 1 + 0.02 * shown], tickformat: ".0%", nticks: fewTicks(width), title: "coverage" },
  });
}

function classRiskChart(stop, theme, width, onPaper) {
  const highs = stop.class_risk.map((value) => value?.[2] ?? 0);
  const reference = report.alphaWord === "alpha" ? stop.value : stop.risk[0];
  const end = roundRange(Math.max(reference, ...highs), report.bound);
  return classChart(theme, width, onPaper, {
    values: stop.class_risk, text: loss, quantity: "mean loss", reference,
    xaxis: { range: [-0.02 * end, 1.04 * end], nticks: fewTicks(width), title: "realised risk" },
  });
}

// --- the map of truth against labels

// A share in whole percent that never says "none" or "all" of what is neither.
function cellText(held, rows) {
  const rounded = Math.round((100 * held) / rows);
  if (rounded === 0 && held > 0) return "<1";
  return rounded === 100 && held < rows ? ">99" : String(rounded);
}

// In a column of its own it is as tall as the two charts beside it.
function mapHeight(width, onPaper) {
  if (K <= 6 && width < 600 && !onPaper) return Math.min(2 * classHeight() + 188, 1.3 * width);
  const height = 150 + Math.max(K, 4) * (K <= 12 ? 46 : K <= 30 ? 26 : 15);
  return onPaper ? Math.min(height, PAGE_HEIGHT) : height;
}

function heldChart(stop, theme, width) {
  const labels = classes.map((_, k) => k);
  const narrow = width < 420;
  const cells = (value) => stop.held.map((row, y) => row.map((held, k) => (classRows[y] === 0 ? null : value(held, classRows[y], y, k))));
  const map = {
    type: "heatmap", x: labels, y: labels, z: cells((held, rows) => held / rows), zmin: 0, zmax: 1,
    colorscale: "Cividis", xgap: K > 30 ? 0 : 1, ygap: K > 30 ? 0 : 1, hoverinfo: "text", hoverongaps: false,
    hovertext: cells((held, rows, y, k) => `true class: ${plain(classes[y])}<br>label: ${plain(classes[k])}<br>in ${count(held)} of ${rowsOf(rows)} (${percent(held / rows)})`),
    showscale: !narrow, colorbar: { tickformat: ".0%", thickness: 12, outlinewidth: 0, len: 1 },
  };
  if (K <= 12) Object.assign(map, { text: cells((held, rows) => plain(cellText(held, rows))), texttemplate: "%{text}", textfont: { size: 14 } });
  const outline = (k) => ({ type: "rect", x0: k - 0.5, x1: k + 0.5, y0: k - 0.5, y1: k + 0.5, line: { color: VERMILLION, width: K > 30 ? 1.5 : 3 } });
  const notes = labels.filter((y) => classRows[y] === 0).map((y) => ({ xref: "paper", x: 0.5, y, text: "no rows", showarrow: false, font: { color: theme.muted } }));
  return {
    traces: [map],
    layout: layoutOf(theme, {
      shapes: labels.map(outline), annotations: notes,
      xaxis: { ...classTicksBelow((width - (narrow ? 110 : 200)) / K, width), range: [-0.5, K - 0.5], title: "label in the set", showgrid: false },
      yaxis: { ...classTicks(K > 30 ? 13 : 26, nameLength(width)), range: [K - 0.5, -0.5], title: "true class", showgrid: false },
    }),
  };
}

// --- predicted against observed

const reliabilityChart = (kind, unit) => (stop, theme, width) => {
  const { bins } = report.reliability[kind];
  const largest = Math.max(...bins.map((bin) => bin.count));
  const texts = bins.map(({ count: number, predicted, observed }) => `${count(number)} ${unit}<br>predicted ${percent(predicted)}<br>observed ${observed.length > 1 ? span(observed, percent) : percent(observed[0])}`);
  const points = {
    type: "scatter", mode: "lines+markers", x: bins.map((bin) => bin.predicted), y: bins.map((bin) => bin.observed[0]), hoverinfo: "text", hovertext: texts,
    line: { color: theme.main, width: 1.5 }, cliponaxis: false,
    marker: { color: theme.main, opacity: 1, size: bins.map((bin) => 6 + 10 * Math.sqrt(bin.count / largest)) },
  };
  if (bins.every((bin) => bin.observed.length > 1)) {
    points.error_y = {
      type: "data", symmetric: false, color: theme.main, thickness: 1.6, width: 4,
      array: bins.map(({ observed }) => observed[2] - observed[0]), arrayminus: bins.map(({ observed }) => observed[0] - observed[1]),
    };
  }
  const diagonal = { type: "scatter", mode: "lines", x: [0, 1], y: [0, 1], hoverinfo: "skip", line: { color: theme.ink, width: 1.5, dash: "dash" } };
  const scale = { range: [-0.02, 1.02], tickformat: ".0%", nticks: fewTicks(width) };
  return { traces: [diagonal, points], layout: layoutOf(theme, { xaxis: { ...scale, title: "predicted probability" }, yaxis: { ...scale, title: "observed share" } }) };
};

// --- the scores of test rows against those calibrated with

function scoresChart(stop, theme, width) {
  const [calibrated, tested] = [report.scores.calibrated, report.scores.new].map(sharesOf);
  const bins = tested.map((_, i) => i / tested.length);
  const middles = bins.map((from) => from + 0.5 / tested.length);
  const texts = bins.map((_, i) => `largest probability ${probabilityBin(i)}<br>test rows ${percent(tested[i])}<br>calibration rows ${percent(calibrated[i])}`);
  return {
    traces: [
      { type: "bar", name: "test rows", x: middles, y: tested, hoverinfo: "text", hovertext: texts, marker: { color: theme.main }, width: 0.9 / tested.length },
      { type: "scatter", mode: "lines", name: "calibration rows", x: [...bins, 1], y: [...calibrated, calibrated.at(-1)], hoverinfo: "skip", line: { color: theme.ink, width: 2, shape: "hv" } },
    ],
    layout: layoutOf(theme, {
      showlegend: true,
      xaxis: { title: "largest probability", range: [Math.floor(16 / K) / 16 - 0.02, 1.02], tickformat: ".0%", nticks: fewTicks(width), showgrid: false },
      yaxis: { title: "share of rows", tickformat: ".0%", rangemode: "tozero", nticks: 6 },
    }),
  };
}

const fixedHeight = (onScreen, onPaper) => (width, printed) => (printed ? onPaper : onScreen);
const barHeight = K > 6 ? fixedHeight(340, 260) : fixedHeight(300, 230);

const CHARTS = {
  risk: { height: fixedHeight(350, 220), draw: riskChart },
  size: { height: fixedHeight(350, 220), draw: sizeChart },
  sizes: { height: barHeight, draw: sizesChart },
  centroids: { height: barHeight, draw: centroidsChart },
  class_coverage: { height: classHeight, draw: classCoverageChart },
  class_risk: { height: classHeight, draw: classRiskChart },
  strata: { height: (width, onPaper) => heightOf(report.strata.names.length, onPaper), draw: strataChart },
  held: { height: mapHeight, draw: heldChart },
  top: { height: fixedHeight(350, 260), draw: reliabilityChart("top", "rows") },
  cumulative: { height: fixedHeight(350, 260), draw: reliabilityChart("cumulative", "probabilities") },
  scores: { height: fixedHeight(300, 230), draw: scoresChart },
  rules: { height: fixedHeight(350, 280), draw: rulesChart },
};
