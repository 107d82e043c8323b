// The budgets and how much of them is left.

import { byId, element } from "./dom.js";
import { money } from "./figures.js";

const STATES = { ok: "Within", warning: "Nearly spent", spent: "Spent" };

export function showBudgets(list, budgets) {
  byId("budgets-section").hidden = budgets.length === 0;
  const shown = JSON.stringify(budgets);
  if (list.dataset.shown === shown) return;
  list.dataset.shown = shown;
  list.replaceChildren(...budgets.map(budgetItem));
}

function budgetItem(budget) {
  const { amount, currency, name, reserved, spent, state } = budget;
  const share = part(spent, amount);
  const held = Math.min(part(reserved, amount), 1 - share);
  const bar = element(
    "div",
    {
      class: `meter ${state}`,
      role: "meter",
      "aria-label": `Spent of ${name}`,
      "aria-valuemin": "0",
      "aria-valuemax": "100",
      "aria-valuenow": String(Math.round(share * 100)),
    },
    stretch("used", share),
    stretch("held", held),
  );
  const left = `${money(spent, currency)} of ${money(amount, currency)}`;
  const running = Number(reserved) > 0 ? ` · ${money(reserved, currency)} reserved by running calls` : "";
  return element(
    "li",
    {},
    element(
      "div",
      { class: "line" },
      element("strong", {}, name),
      element("span", { class: "hint" }, scope(budget)),
    ),
    bar,
    element(
      "div",
      { class: "line" },
      element("span", { class: "hint", title: `${spent} of ${amount} ${currency}` }, left + running),
      element("span", { class: `badge ${state}` }, STATES[state]),
    ),
  );
}

function part(amount, whole) {
  return Math.min(Number(amount) / Number(whole) || 0, 1);
}

function stretch(kind, share) {
  const made = element("span", { class: kind });
  made.style.width = `${share * 100}%`;
  return made;
}

function scope({ period, period_name: kind, profile, tags }) {
  const parts = [kind === "total" ? "in total" : `per ${kind}, ${period}`];
  if (profile) parts.push(`profile ${profile}`);
  for (const [name, value] of Object.entries(tags)) parts.push(`${name} ${value}`);
  return parts.join(" · ");
}
