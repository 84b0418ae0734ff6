// The slider moves one number, the index of a stop; everything shown follows from it.

const slider = document.getElementById("alpha");
const dark = matchMedia("(prefers-color-scheme: dark)");
const print = matchMedia("print");
const PRINT_WIDTH = { column: 326, wide: 676 }; // pixels that fit a sheet of A4 with the margins of the style sheet
const CONFIG = { displayModeBar: false, typesetMath: false, doubleClick: false, showTips: false };

let here = report.start;
let printing = false;

// --- text

function showFields(stop) {
  for (const shown of document.querySelectorAll("[data-field]")) {
    const text = stop.fields[shown.dataset.field];
    if (shown.textContent !== text) shown.textContent = text;
    if (["note", "tag"].includes(shown.dataset.field)) shown.hidden = text === "";
  }
  Object.assign(document.querySelector(".verdict").dataset, { icon: stop.icon, colour: stop.colour });
  slider.value = here;
  slider.setAttribute("aria-valuetext", `${report.alphaWord} ${stop.alpha}`);
}

function announce() {
  const { fields } = stops[here];
  document.getElementById("announcement").textContent =
    `At ${report.alphaWord} ${fields.alpha}: ${fields.sentence} Realised risk ${fields.risk}, coverage ${fields.coverage}, mean size ${fields.size}.`;
}

// --- tables

function showTables(stop) {
  for (const details of document.querySelectorAll("details[data-table][open]")) {
    details.querySelector(".scroll").replaceChildren(tableElement(TABLES[details.dataset.table](stop)));
  }
  for (const box of document.querySelectorAll("[data-cases]")) {
    const table = casesTable(stop, box.dataset.cases);
    box.replaceChildren(table.rows.length ? tableElement(table) : element("p", { class: "left-out" }, "None at this alpha."));
  }
  document.querySelector("[data-strata]")?.replaceChildren(tableElement(strataTable(stop)));
  document.querySelector("[data-rules]")?.replaceChildren(tableElement(rulesTable(stop)));
  document.querySelector("[data-slices]")?.replaceChildren(tableElement(slicesTable()));
  showFound(stop);
  sayWhatGoesOn();
}

const find = document.getElementById("find");

function showFound(stop) {
  const box = document.querySelector("[data-found]");
  const asked = find.value.trim();
  if (asked === "") {
    box.replaceChildren();
    return;
  }
  const cases = casesFound(asked);
  const shown = cases.slice(0, MOST_FOUND);
  const words = cases.length === 0 ? "No row on this page matches." : `The first ${shown.length} of ${count(cases.length)} rows.`;
  const table = shown.length ? [tableElement(tableOfCases(stop, "Rows found", shown))] : [];
  box.replaceChildren(...table, ...(cases.length === shown.length && shown.length ? [] : [element("p", { class: "left-out" }, words)]));
}

// Where a table is wider than its box, a line below it says so.
function sayWhatGoesOn() {
  for (const box of document.querySelectorAll(".scroll")) {
    const wider = box.scrollWidth > box.clientWidth + 1;
    const said = box.nextElementSibling?.matches(".goes-on") ? box.nextElementSibling : null;
    if (wider && !said) box.after(element("p", { class: "goes-on", "aria-hidden": "true" }, "Scroll right to see the rest of the table."));
    if (!wider && said) said.remove();
  }
}

// --- charts

async function unpacked(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

// The script that draws them is packed; until it is there, and in old browsers, the tables hold the numbers.
async function unpackPlotly() {
  const script = element("script", {}, await unpacked(document.getElementById("plotly").textContent));
  document.head.append(script);
  script.remove();
}

const charts = [...document.querySelectorAll("[data-chart]")].map((box) => ({ box, ...CHARTS[box.dataset.chart], stale: true, seen: false }));

function drawChart(chart) {
  const sheet = chart.box.closest(".wide") ? PRINT_WIDTH.wide : PRINT_WIDTH.column;
  const width = printing ? sheet : chart.box.clientWidth;
  if (width === 0 || !window.Plotly) return;
  const theme = dark.matches && !printing ? THEMES.dark : THEMES.light;
  const { traces, layout } = chart.draw(stops[here], theme, width, printing);
  const height = chart.height(width, printing);
  chart.box.style.height = `${height}px`;
  Plotly.react(chart.box, traces, { ...layout, width, height }, CONFIG);
  chart.stale = false;
  chart.box.dataset.stop = here;
}

// Those out of sight wait until the slider rests, so that moving it stays quick.
let rest = 0;
function drawLater() {
  clearTimeout(rest);
  rest = setTimeout(function one() {
    const chart = charts.find((each) => each.stale && each.box.clientWidth > 0);
    if (!chart || !window.Plotly) return;
    drawChart(chart);
    rest = setTimeout(one);
  }, 150);
}

function redraw() {
  for (const chart of charts) chart.stale = true;
  schedule();
}

// One chart in sight a frame: the slider never waits for more than one.
let frame = 0;
function drawNext() {
  const chart = window.Plotly && charts.find((each) => each.stale && each.seen);
  if (chart) drawChart(chart);
  frame = chart ? requestAnimationFrame(drawNext) : 0;
  if (!frame) drawLater();
}

let tablesFrame = 0;
function schedule() {
  tablesFrame ||= requestAnimationFrame(() => {
    tablesFrame = 0;
    showTables(stops[here]);
  });
  frame ||= requestAnimationFrame(drawNext);
}

function watchCharts() {
  const sight = new IntersectionObserver((entries) => {
    for (const entry of entries) charts.find((chart) => chart.box === entry.target).seen = entry.isIntersecting;
    charts.filter((chart) => chart.stale && chart.seen).forEach(drawChart);
  }, { rootMargin: "100px" });
  const widths = new ResizeObserver((entries) => {
    const changed = entries.map((entry) => charts.find((chart) => chart.box === entry.target)).filter((chart) => chart.width !== chart.box.clientWidth);
    for (const chart of changed) Object.assign(chart, { stale: true, width: chart.box.clientWidth });
    if (changed.length && !printing) schedule();
    sayWhatGoesOn();
  });
  for (const chart of charts) {
    chart.box.style.height = `${chart.height(chart.box.clientWidth, false)}px`;
    sight.observe(chart.box);
    widths.observe(chart.box);
  }
}

function setPrinting(now) {
  if (printing === now) return;
  printing = now;
  for (const details of document.querySelectorAll("details.technical")) { // an auditor's copy has them
    if (now) details.dataset.was = details.open ? "open" : "closed";
    details.open = now || details.dataset.was === "open";
  }
  for (const chart of charts) drawChart(chart);
}

// --- the address: #alpha=0.05 opens there

const addressOf = (stop) => `#alpha=${encodeURIComponent(stop.alpha)}`;
const stopOfAddress = () => stops.findIndex((stop) => [addressOf(stop), `#alpha=${stop.alpha}`].includes(location.hash));

let writing = 0;
function writeAddress() {
  clearTimeout(writing); // browsers refuse more than a hundred changes in half a minute
  writing = setTimeout(() => {
    history.replaceState(null, "", addressOf(stops[here]));
    announce();
  }, 350);
}

function moveTo(stop) {
  if (stop === here) return;
  here = stop;
  showFields(stops[here]);
  redraw();
}

slider.addEventListener("input", () => {
  moveTo(Number(slider.value));
  writeAddress();
});
document.getElementById("back").addEventListener("click", () => {
  moveTo(report.start);
  writeAddress();
});
addEventListener("hashchange", () => {
  const stop = stopOfAddress();
  if (stop >= 0) moveTo(stop);
});
let lookup = null;
find.addEventListener("input", async () => {
  lookup ??= unpacked(report.cases.lookup.packed).then((text) => addLookup(JSON.parse(text)), () => {}); // an old browser finds those that stand out
  await lookup;
  showFound(stops[here]);
  sayWhatGoesOn();
});
document.addEventListener("toggle", (event) => {
  if (event.target.matches("details[data-table]") && event.target.open) showTables(stops[here]);
}, true);
dark.addEventListener("change", redraw);
addEventListener("beforeprint", () => setPrinting(true));
addEventListener("afterprint", () => setPrinting(false));
print.addEventListener("change", () => setPrinting(print.matches));

if (stopOfAddress() >= 0) here = stopOfAddress();
showFields(stops[here]);
watchCharts();
schedule();
unpackPlotly().then(redraw, () => {
  document.getElementById("results").prepend(element("p", { class: "note" }, "This browser can't show the charts; a newer browser can. The table below each chart has the same numbers."));
});
