// Stacked bars by day, drawn as SVG; one drawing for each currency.

import { drawn, element } from "./dom.js";
import { compact, count, money } from "./figures.js";

const COLOURS = 8;
const HEIGHT = 220;
const [TOP, BOTTOM, LEFT] = [10, 24, 64];
const DAY = 86_400_000;
const MEASURES = {
  cost: (row) => Number(row.cost ?? 0),
  tokens: (row) => row.input_tokens + row.output_tokens,
  calls: (row) => row.calls,
};

/** The drawings of a report: its `days` rows hold a day and a group, its `groups` rows a group. */
export function chartsOf(report, measure, width) {
  const value = MEASURES[measure];
  const currencies = byCalls(report.groups);
  // Only money needs to be kept apart.
  const parts = measure === "cost" ? currencies.filter((name) => isSpent(report, name)) : [null];
  const charts = parts.map((currency) => chart(report, currency, value, format(measure, currency), width));
  if (charts.length && report.groups.some((row) => value(row) > 0)) return charts;
  const nothing =
    measure === "cost" && report.groups.length
      ? "Nothing was spent in these days; show tokens or calls instead."
      : "No calls in these days.";
  return [element("p", { class: "nothing" }, nothing)];
}

// The currencies, that of the most calls first.
function byCalls(rows) {
  const calls = new Map();
  for (const row of rows) calls.set(row.currency, (calls.get(row.currency) ?? 0) + row.calls);
  return [...calls.keys()].sort((a, b) => calls.get(b) - calls.get(a));
}

function isSpent(report, currency) {
  return report.groups.some((row) => row.currency === currency && Number(row.cost) > 0);
}

function format(measure, currency) {
  return measure === "cost" ? (amount) => money(amount, currency) : (number) => count(number);
}

function chart(report, currency, value, shown, width) {
  const mine = (row) => currency === null || row.currency === currency;
  const groups = legend(report.groups.filter(mine), value);
  const days = daysOf(report);
  const table = days.map(() => groups.map(() => 0));
  for (const row of report.days.filter(mine)) {
    const day = days.indexOf(row.values[0]);
    const group = groups.findIndex((each) => each.names.has(row.values[1]));
    if (day >= 0 && group >= 0) table[day][group] += value(row);
  }
  const title = currency === null ? null : element("h3", {}, currency);
  return element(
    "figure",
    { class: "chart" },
    title,
    drawing(days, groups, table, shown, currency !== null, width),
    keys(groups, shown),
    asTable(days, groups, table, shown),
  );
}

// The groups by size, the largest first; those that have no colour left are one.
function legend(rows, value) {
  const sizes = new Map();
  for (const row of rows) sizes.set(row.values[0], (sizes.get(row.values[0]) ?? 0) + value(row));
  const sorted = [...sizes].filter(([, size]) => size > 0).sort((a, b) => b[1] - a[1]);
  const most = sorted.length > COLOURS ? COLOURS - 1 : COLOURS;
  const groups = sorted
    .slice(0, most)
    .map(([name, size]) => ({ label: name ?? "none", names: new Set([name]), size }));
  const rest = sorted.slice(most);
  if (rest.length) {
    const size = rest.reduce((total, each) => total + each[1], 0);
    groups.push({ label: `${rest.length} others`, names: new Set(rest.map(([name]) => name)), size });
  }
  return groups;
}

function daysOf({ since, until }) {
  const days = [];
  for (let at = Date.parse(since); at <= Date.parse(until); at += DAY)
    days.push(new Date(at).toISOString().slice(0, 10));
  return days;
}

function drawing(days, groups, table, shown, isMoney, width) {
  const most = Math.max(...table.map((row) => row.reduce((a, b) => a + b, 0)));
  const steps = scale(most, isMoney);
  const inner = HEIGHT - TOP - BOTTOM;
  const y = (size) => TOP + inner * (1 - size / steps.at(-1));
  const step = Math.max(width - LEFT - 4, days.length * 2) / days.length;
  const label = `Stacked bars of ${days.length} days, the highest ${shown(most)}; the table below has the figures.`;
  const axis = steps.flatMap((size) => [
    drawn("line", { class: "grid", x1: LEFT, x2: width, y1: y(size), y2: y(size) }),
    drawn(
      "text",
      { x: LEFT - 8, y: y(size) + 4, "text-anchor": "end" },
      isMoney ? shown(size) : compact(size),
    ),
  ]);
  const every = Math.ceil(days.length / Math.max(2, Math.floor((width - LEFT) / 70)));
  const bars = days.map((day, index) => {
    const x = LEFT + index * step;
    const last = (days.length - 1 - index) % every === 0;
    const name = last
      ? drawn("text", { x: x + step / 2, y: HEIGHT - 6, "text-anchor": "middle" }, dayName(day))
      : null;
    return drawn("g", {}, stack(day, table[index], groups, shown, y, x + step * 0.14, step * 0.72), name);
  });
  return drawn(
    "svg",
    { role: "img", "aria-label": label, width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}` },
    axis,
    bars,
  );
}

function stack(day, sizes, groups, shown, y, x, width) {
  let below = 0;
  const bars = [];
  sizes.forEach((size, index) => {
    if (size <= 0) return;
    const [top, foot] = [y(below + size), y(below)];
    const title = drawn("title", {}, `${day} · ${groups[index].label}: ${shown(size)}`);
    bars.push(
      drawn("rect", { class: `fill-${index}`, x, y: top, width, height: Math.max(foot - top, 0.5) }, title),
    );
    below += size;
  });
  return bars;
}

// Round numbers from 0 to at least the highest bar.
function scale(most, isMoney) {
  const rough = (most || 1) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.9999);
  if (!isMoney) step = Math.max(1, Math.ceil(step));
  return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 || 2 }, (_, index) => index * step);
}

function dayName(day) {
  return new Date(day).toLocaleDateString("en", { month: "short", day: "numeric", timeZone: "UTC" });
}

function keys(groups, shown) {
  const items = groups.map(({ label, size }, index) =>
    element(
      "li",
      {},
      element("span", { class: `key fill-${index}` }),
      element("span", {}, label),
      element("span", { class: "hint" }, shown(size)),
    ),
  );
  return element("ul", { class: "keys" }, items);
}

function asTable(days, groups, table, shown) {
  const head = element(
    "tr",
    {},
    element("th", { scope: "col" }, "Day"),
    groups.map(({ label }) => element("th", { scope: "col", class: "end" }, label)),
  );
  const rows = days.flatMap((day, index) =>
    table[index].some((size) => size > 0)
      ? [
          element(
            "tr",
            {},
            element("th", { scope: "row" }, day),
            table[index].map((size) => element("td", { class: "end" }, size ? shown(size) : "")),
          ),
        ]
      : [],
  );
  const made = element("table", {}, element("thead", {}, head), element("tbody", {}, rows));
  const frame = element(
    "div",
    { class: "scrolls", tabindex: "0", role: "group", "aria-label": "Figures by day" },
    made,
  );
  return element("details", {}, element("summary", {}, "Show as a table"), frame);
}
