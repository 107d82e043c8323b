// The categories and profiles that there are to choose from.

import { element } from "./dom.js";
import { json } from "./gateway.js";

const USUAL = "m";

/** Fills the list, and chooses `wanted` if it is there. `fail` hears why the list stays empty. */
export async function loadTargets(select, wanted, fail) {
  select.disabled = true;
  try {
    const { data } = await json("/v1/models");
    const kinds = { category: "Categories", profile: "Profiles" };
    for (const [kind, label] of Object.entries(kinds)) {
      const models = data.filter((model) => model.lmclient?.kind === kind);
      if (models.length) select.append(element("optgroup", { label }, models.map(option)));
    }
    choose(select, wanted);
  } catch (error) {
    fail(`The categories cannot be listed. ${error.message}`);
  }
  select.disabled = false;
}

/** Chooses a name, or the usual category where that is none of the list. */
export function choose(select, wanted) {
  const names = [...select.options].map((each) => each.value);
  select.value = [wanted, USUAL, names[0]].find((name) => names.includes(name)) ?? "";
}

function option({ id, lmclient: { kind, profiles } }) {
  const text = kind === "category" ? `${id} · ${profiles.join(", ")}` : id;
  return element("option", { value: id }, text);
}
