// What was spent today, in 7 and in 30 days.

import { element } from "./dom.js";
import { compact, count, money } from "./figures.js";

const TITLES = { today: "Today", week: "7 days", month: "30 days" };

export function showTotals(container, totals) {
  container.replaceChildren(...Object.entries(TITLES).map(([name, title]) => card(title, totals[name])));
}

function card(title, rows) {
  const priced = rows.filter((row) => row.cost !== null).sort((a, b) => b.calls - a.calls);
  const amounts = priced.map(({ cost, currency }) =>
    element("p", { class: "amount", title: `${cost} ${currency}` }, money(cost, currency)),
  );
  if (!amounts.length) amounts.push(element("p", { class: "amount" }, "–"));
  return element(
    "div",
    { class: "card total" },
    element("h3", {}, title),
    amounts,
    element("p", { class: "hint" }, about(rows)),
  );
}

function about(rows) {
  const sum = (field) => rows.reduce((total, row) => total + row[field], 0);
  const parts = [
    `${count(sum("calls"))} ${sum("calls") === 1 ? "call" : "calls"}`,
    `${compact(sum("input_tokens"))} in`,
    `${compact(sum("output_tokens"))} out`,
  ];
  for (const { saved_cost: saved, currency } of rows) {
    if (Number(saved) > 0) parts.push(`${money(saved, currency)} saved by the cache`);
  }
  if (sum("unpriced")) parts.push(`${count(sum("unpriced"))} without a known price`);
  return parts.join(" · ");
}
