// Every table of the page: its heading cells and rows as text, and how they become elements.

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// The first cell of a row names it. `current` is the row of the slider's stop, if rows are stops; `text` the columns of
// words; a `quiet` caption is heard but not seen, where a heading stands above the table anyway.
function tableElement({ caption, head, rows, current, text = [0], quiet = false }) {
  const kind = (column) => (text.includes(column) ? { class: "text" } : {});
  const long = (value, column) => (text.includes(column) && value.length > 24 ? { class: "text long" } : kind(column)); // it may wrap
  const cell = (value, column) => (column === 0 ? element("th", { scope: "row", ...long(value, 0) }, value) : element("td", long(value, column), value));
  const body = rows.map((cells, r) => element("tr", r === current ? { "aria-current": "true" } : {}, ...cells.map(cell)));
  const titles = head.map((title, column) => element("th", { scope: "col", ...kind(column) }, title));
  return element("table", {}, element("caption", quiet ? { class: "unseen" } : {}, caption), element("thead", {}, element("tr", {}, ...titles)), element("tbody", {}, ...body));
}

const threeColumns = (estimate, text) => (estimate === null ? ["no rows", "", ""] : estimate.map((value) => text(value)));
const word = report.alphaWord;
const interval = `${report.confidence} interval`;

function byAlpha(stop, title, value, text) {
  return {
    caption: `${title} at every ${word} of the slider`, head: [word, title, `${interval}, from`, "to"], current: stops.indexOf(stop),
    rows: stops.map((each) => [each.alpha, ...threeColumns(value(each), text)]),
  };
}

function byClass(stop, title, values, text, more = {}) {
  return {
    caption: `${title} by true class at ${word} ${stop.alpha}`, head: ["true class", "rows", title, `${interval}, from`, "to", ...Object.keys(more)],
    rows: classes.map((name, k) => [name, count(classRows[k]), ...threeColumns(values[k], text), ...Object.values(more).map((column) => column[k])]),
  };
}

function byCount(stop, title, names, counts) {
  return {
    caption: `Test rows by ${title} at ${word} ${stop.alpha}`, head: [title, "rows", "share"],
    rows: counts.map((number, i) => [names(i), count(number), percent(number / report.rows)]),
  };
}

function heldTable(stop) {
  const cells = (held, y) => held.map((number) => (classRows[y] === 0 ? "no rows" : percent(number / classRows[y], 1)));
  return {
    caption: `For each true class, the share of sets that contain each label, at ${word} ${stop.alpha}`,
    head: ["true class", "rows", ...classes], rows: classes.map((name, y) => [name, count(classRows[y]), ...cells(stop.held[y], y)]),
  };
}

const known = (value, text) => (value === null || value === undefined ? "-" : text(value));

function rulesByAlpha(stop) {
  const { names, mean_size: sizes } = report.rules;
  return {
    caption: `Mean size of each growth rule at every ${word} of the slider`, head: [word, ...names], current: stops.indexOf(stop),
    rows: stops.map((each, i) => [each.alpha, ...names.map((_, r) => known(sizes[r]?.[i], size))]),
  };
}

function rulesTable(stop) {
  const { names, risk, mean_size: sizes } = report.rules;
  const here = stops.indexOf(stop);
  const row = (name, r) => [
    name === report.growth ? `${name} (in use)` : name, known(risk[r]?.[here], loss), known(sizes[r]?.[here], size), report.ruleNotes[name] ?? "",
  ];
  return { caption: `Growth rules at ${word} ${stop.alpha}`, head: ["rule", "realised risk", "mean size", "how it orders labels"], rows: names.map(row), text: [0, 3], quiet: true };
}

// --- groups and classes with a guarantee of their own

function strataTable(stop) {
  const { names, rows, calibrated, unit, weighted, title } = report.strata;
  const counted = unit === "cluster" || weighted;
  const units = counted ? { [unit === "cluster" ? "test clusters" : "count as"]: (part) => known(part.units, (n) => count(Math.round(n))) } : {};
  const columns = {
    "alpha": (part) => (part.exempt ? "-" : part.alpha), "realised risk": (part) => known(part.risk, ([value]) => loss(value)),
    [`${interval}, from`]: (part) => known(part.risk, ([, low]) => loss(low)), "to": (part) => known(part.risk, ([, , high]) => loss(high)),
    "verdict": (part) => part.word, "test rows": (_, k) => count(rows[k]), ...units, "mean size": (part) => known(part.mean_size, size),
    "single labels": (part) => known(part.single, (share) => percent(share, 1)), "threshold": (part) => (part.exempt ? "-" : part.threshold), [`calibration ${unit}s`]: (_, k) => count(calibrated[k]),
  };
  return {
    caption: `Each ${title} at ${word} ${stop.alpha}`, head: [title, ...Object.keys(columns)], text: [0, 5],
    rows: stop.strata.map((part, k) => [names[k], ...Object.values(columns).map((cell) => cell(part, k))]),
  };
}

// --- single cases

function setOf(row, s) {
  if (row.sets) return row.sets[s];
  if (row.changes) {
    let at = 0;
    while (at + 3 < row.changes.length && row.changes[at + 3] <= s) at += 3;
    return row.changes.slice(at + 1, at + 3);
  }
  const held = classes.map((_, k) => k).filter((k) => s < row.until[k]);
  return [held[0], held[held.length - 1]];
}

const setText = ([lower, upper]) => (lower === upper ? classes[lower] : `${classes[lower]} .. ${classes[upper]}`);
const labelsText = (number) => (number === 1 ? "1 label" : `${number} labels`);

function whereTruthLies(truth, [lower, upper]) {
  if (truth < lower) return `${labelsText(lower - truth)} below`;
  return truth > upper ? `${labelsText(truth - upper)} above` : "in the set";
}

function tableOfCases(stop, title, cases) {
  const s = stops.indexOf(stop);
  const row = (each) => {
    const set = setOf(each, s);
    return [count(each.row), classes[each.truth], setText(set), String(set[1] - set[0] + 1), whereTruthLies(each.truth, set), ...each.values.map((value) => String(value ?? ""))];
  };
  return {
    caption: `${title} at ${word} ${stop.alpha}`,
    head: ["row", "truth", "set", "labels", "the truth is", ...report.cases.columns], rows: cases.map(row),
    text: [1, 2, 4, ...report.cases.columns.map((_, c) => 5 + c)], quiet: true,
  };
}

const casesTable = (stop, which) =>
  tableOfCases(stop, which === "widest" ? "Largest sets" : "Misses", stop[which].map((index) => report.cases.rows[index]));

const MOST_FOUND = 20;
let findable = report.cases.rows;

// The first rows join those that stand out once somebody looks for one.
function addLookup({ row, truth, values, sets }) {
  const first = row.map((number, i) => ({ row: number, truth: truth[i], values: values[i], changes: sets[i] }));
  const known = new Set(row);
  findable = [...first, ...report.cases.rows.filter((each) => !known.has(each.row))];
}

// 12,345 and 12345 are the same number.
const comparable = (text) => text.toLowerCase().replace(/(\d)[,'’\s](?=\d{3}(?!\d))/g, "$1");

// Cases of that row number, or with a column that holds the text; those that are equal to it come first.
function casesFound(asked) {
  const text = comparable(asked);
  const equal = [];
  const holding = [];
  for (const each of findable) {
    each.texts ??= each.values.map((value) => comparable(String(value ?? "")));
    if (String(each.row) === text || each.texts.includes(text)) equal.push(each);
    else if (each.texts.some((value) => value.includes(text))) holding.push(each);
  }
  return [...equal, ...holding];
}

function scoresTable() {
  const { calibrated, new: tested } = report.scores;
  const [before, now] = [calibrated, tested].map(sharesOf);
  const rows = tested.map((number, i) => [probabilityBin(i), count(number), percent(now[i]), count(calibrated[i]), percent(before[i])]);
  return {
    caption: "Rows by their largest probability", head: ["largest probability", "test rows", "share", "calibration rows", "share"],
    rows: rows.filter((_, i) => tested[i] + calibrated[i] > 0),
  };
}

function slicesTable() {
  const row = ({ column, value, rows, missed, stands_out: standsOut }) =>
    [column, value === "" ? "(missing)" : value, count(rows), ...missed.map((share) => percent(share, 1)), standsOut ? "stands out" : "within chance"];
  return {
    caption: "Values with the most misses at the calibrated alpha", head: ["column", "value", "rows", "missed", "from", "to", "against all rows"], rows: report.slices.worst.map(row),
    text: [0, 1, 6], quiet: true,
  };
}

function reliabilityTable(title, bins) {
  const row = ({ from, to, count: number, predicted, observed }) => [`${percent(from, 0)} to ${percent(to, 0)}`, count(number), percent(predicted), ...observed.map((share) => percent(share))];
  const ends = bins.some(({ observed }) => observed.length > 1) ? [`${interval}, from`, "to"] : [];
  return { caption: title, head: ["probability", "count", "predicted", "observed", ...ends], rows: bins.map(row), quiet: true };
}

const TABLES = {
  risk: (stop) => byAlpha(stop, "realised risk", (each) => each.risk, loss),
  size: (stop) => byAlpha(stop, "mean size", (each) => each.mean_size, size),
  sizes: (stop) => byCount(stop, "labels in the set", (i) => String(i + 1), stop.sizes),
  centroids: (stop) => byCount(stop, "middle of the set", middleName, stop.centroids),
  class_coverage: (stop) => byClass(stop, "coverage", stop.class_coverage, percent, { "mean size": stop.class_size.map((value) => known(value, size)) }),
  class_risk: (stop) => byClass(stop, "realised risk", stop.class_risk, loss),
  held: heldTable,
  top: () => reliabilityTable("How often the most probable label is right", report.reliability.top.bins),
  cumulative: () => reliabilityTable("How often the truth is at or below a label", report.reliability.cumulative.bins),
  scores: scoresTable,
  rules: rulesByAlpha,
};
