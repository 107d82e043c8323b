// The spend page: asks the ledger every few seconds, and shows what has changed.

import { showBudgets } from "./budgets.js";
import { chartsOf } from "./chart.js";
import { byId, element } from "./dom.js";
import { json } from "./gateway.js";
import { showRecords, tagsOf } from "./records.js";
import { showTotals } from "./totals.js";

const EVERY = 3000;
const NEWEST = 50;
const SHOWN = 200;
const page = Object.fromEntries(
  [
    "budgets",
    "by",
    "charts",
    "days",
    "filter",
    "found",
    "live",
    "measure",
    "notice",
    "outcome",
    "records",
    "totals",
  ].map((id) => [id, byId(id)]),
);
let seen = null;
let records = [];
let report = null;
let asked = 0;
let timer = 0;
let width = 0;

for (const id of ["by", "days"]) page[id].addEventListener("change", () => guarded(loadReport));
page.measure.addEventListener("change", drawCharts);
page.filter.addEventListener("input", drawRecords);
page.outcome.addEventListener("change", drawRecords);
new ResizeObserver(fitCharts).observe(page.charts);
document.addEventListener("visibilitychange", () => document.hidden || poll());
poll();

/** Looks for news, and again a while later as long as the page can be seen. */
async function poll() {
  clearTimeout(timer);
  const goesOn = await guarded(loadNews);
  clearTimeout(timer);
  if (goesOn && !document.hidden) timer = setTimeout(poll, EVERY);
}

/** Does the work; whether it makes sense to go on afterwards. */
async function guarded(work) {
  try {
    await work();
  } catch (error) {
    return failed(error);
  }
  page.notice.hidden = true;
  page.live.textContent = "Live";
  page.live.classList.add("on");
  return true;
}

function failed(error) {
  const isHopeless = [401, 404].includes(error.status);
  const again = element("button", { type: "button", click: poll }, "Try again");
  page.notice.replaceChildren(element("p", {}, error.message), ...(isHopeless ? [again] : []));
  page.notice.hidden = false;
  page.live.textContent = "Not live";
  page.live.classList.remove("on");
  return !isHopeless;
}

async function loadNews() {
  const newest = await json(`/spend/records?limit=${NEWEST}`);
  // The newest by their start are not the last to end, so the first one alone does not tell.
  const now = [new Date().toISOString().slice(0, 10), ...newest.records.map(idOf)].join();
  showBudgets(page.budgets, (await json("/spend/budgets")).budgets);
  if (now === seen) return;
  const [overview, all] = await Promise.all([
    json("/spend/overview"),
    json(`/spend/records?limit=${SHOWN}`),
    loadReport(),
  ]);
  showTotals(page.totals, overview.totals);
  records = all.records;
  offerTags();
  drawRecords();
  seen = now;
}

function idOf(record) {
  return `${record.call_id}/${record.attempt}`;
}

async function loadReport() {
  asked += 1;
  const number = asked;
  const by = page.by.value;
  const query = (...names) => {
    const parameters = new URLSearchParams(names.map((name) => ["by", name]));
    parameters.set("days", page.days.value);
    return json(`/spend/report?${parameters}`);
  };
  const [days, groups] = await Promise.all([query("day", by), query(by)]);
  // An answer that has been overtaken by a later one is not shown.
  if (number !== asked) return;
  report = { by, since: days.since, until: days.until, days: days.rows, groups: groups.rows };
  drawCharts();
}

function drawCharts() {
  if (!report) return;
  width = page.charts.clientWidth;
  const opened = [...page.charts.querySelectorAll("details")].map((table) => table.open);
  page.charts.replaceChildren(...chartsOf(report, page.measure.value, width));
  page.charts.querySelectorAll("details").forEach((table, index) => (table.open = opened[index] ?? false));
}

// A table that is opened makes the charts higher, which is no reason to draw them anew.
function fitCharts() {
  if (page.charts.clientWidth !== width) drawCharts();
}

function drawRecords() {
  showRecords(page.records.tBodies[0], page.found, records, page.filter.value, page.outcome.value);
}

/** Offers the tags that calls have had lately beside what every call has. */
function offerTags() {
  const offered = new Set([...page.by.options].map((option) => option.value));
  for (const tag of tagsOf(records)) {
    const value = `tag:${tag}`;
    if (!offered.has(value)) page.by.append(element("option", { value }, `Tag ${tag}`));
  }
}
