// The table of the last requests.

import { element } from "./dom.js";
import { compact, count, duration, money } from "./figures.js";

/** Fills the table with the records that fit the filter, and says in `found` how many. */
export function showRecords(body, found, records, filter, outcome) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const fitting = records.filter(
    (record) => isOutcome(record, outcome) && words.every((word) => textOf(record).includes(word)),
  );
  body.replaceChildren(...fitting.map(row));
  const all = count(records.length);
  const none = records.length ? "None of them fits the filter." : "No calls so far.";
  found.textContent =
    fitting.length === records.length && fitting.length
      ? `The last ${all}`
      : fitting.length
        ? `${count(fitting.length)} of the last ${all}`
        : none;
}

/** The names of the tags that the records have. */
export function tagsOf(records) {
  return [...new Set(records.flatMap((record) => Object.keys(record.tags)))].sort();
}

function isOutcome(record, outcome) {
  if (outcome === "cached") return isCached(record);
  return outcome === "" || record.status === outcome;
}

function isCached(record) {
  return record.cost_source === "cache";
}

function textOf(record) {
  const tags = Object.entries(record.tags).map(([name, value]) => `${name}=${value}`);
  const { category, profile, provider, model, status, error, finish_reason: finish } = record;
  return [category, profile, provider, model, status, error, finish, ...tags].join(" ").toLowerCase();
}

function row(record) {
  return element(
    "tr",
    {},
    element("td", {}, time(record.time)),
    element("td", {}, record.category ?? "–"),
    element("td", {}, record.profile),
    element("td", {}, record.model),
    tokens(record, "input_tokens", "cached_input_tokens", "cached"),
    tokens(record, "output_tokens", "reasoning_tokens", "reasoning"),
    cost(record),
    element("td", { class: "end" }, duration(record.duration)),
    element("td", {}, badge(record)),
    element(
      "td",
      { class: "tags" },
      Object.entries(record.tags).map(([name, value]) =>
        element("span", { class: "tag" }, `${name}=${value}`),
      ),
    ),
  );
}

function time(moment) {
  const local = new Date(moment);
  const day = local.toLocaleDateString("en", { month: "short", day: "numeric" });
  return element("time", { datetime: moment }, `${day}, ${local.toLocaleTimeString("en-GB")}`);
}

function tokens(record, whole, part, name) {
  const title = record[part]
    ? `${count(record[whole])}, of these ${count(record[part])} ${name}`
    : count(record[whole]);
  const about = record.estimated ? "≈ " : "";
  return element(
    "td",
    { class: "end", title: record.estimated ? `${title} (estimated)` : title },
    about + compact(record[whole]),
  );
}

function cost({ cost: amount, currency, saved_cost: saved }) {
  const text = amount === null ? "–" : money(amount, currency);
  const title =
    amount === null
      ? "no known price, or nothing received"
      : `${amount} ${currency}${saved === null ? "" : `, ${saved} saved`}`;
  return element("td", { class: "end", title }, text);
}

function badge(record) {
  const { status, error, finish_reason: finish, http_status: http } = record;
  if (isCached(record)) return element("span", { class: "badge ok" }, "from the cache");
  if (status === "finished")
    return element("span", { class: "badge ok" }, finish === "stop" ? "finished" : `finished: ${finish}`);
  const why = status === "cancelled" ? "" : [error, http].filter(Boolean).join(" ");
  return element(
    "span",
    { class: `badge ${status === "failed" ? "spent" : "warning"}` },
    why ? `${status}: ${why}` : status,
  );
}
