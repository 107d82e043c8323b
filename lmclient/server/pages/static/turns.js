// How a turn looks, while it is being written and afterwards.

import { copyButton } from "./copying.js";
import { element } from "./dom.js";
import { compact, count, duration, money } from "./figures.js";
import { showMarkdown } from "./markdown.js";

const FINISHES = {
  length: "Cut off at the limit of tokens",
  content_filter: "Cut off by the provider's content filter",
  tool_calls: "The model asked for a tool, which this page does not have",
};

/**
 * A turn as an element, with `update(isRunning)` to show what has come in since. `actions` are `edit`
 * (called with the new text) and `retry`.
 */
export function turnView(turn, actions) {
  return turn.role === "user" ? questionView(turn, actions) : answerView(turn, actions);
}

function questionView(turn, actions) {
  const text = element("div", { class: "said" }, turn.text);
  const bar = element("div", { class: "actions" });
  const node = element(
    "article",
    { class: "turn user", "aria-label": "Your turn" },
    heading("You"),
    text,
    bar,
  );
  bar.append(editButton(node, text, bar, () => turn.text, "Ask again", actions.edit));
  return { node, update: () => (text.textContent = turn.text) };
}

function answerView(turn, actions) {
  const reasoning = reasoningView(turn);
  const text = element("div", { class: "said markdown" });
  const error = element("p", { class: "error", role: "alert", hidden: true });
  const figures = element("p", { class: "figures" });
  const bar = element("div", { class: "actions" });
  const title = heading("Answer");
  const foot = element("footer", {}, figures, bar);
  const node = element("article", { class: "turn assistant", "aria-label": "Answer" }, title);
  node.append(reasoning.node, text, error, foot);
  bar.append(
    copyButton(() => turn.text),
    element("button", { type: "button", class: "quiet", click: actions.retry }, "Retry"),
    editButton(node, text, bar, () => turn.text, "Save", actions.edit),
  );
  let shown = null;
  const update = (isRunning) => {
    node.classList.toggle("running", isRunning);
    node.classList.toggle("waiting", isRunning && !turn.text && !turn.reasoning);
    node.setAttribute("aria-busy", String(isRunning));
    reasoning.update(isRunning);
    if (shown !== turn.text) showMarkdown(text, (shown = turn.text));
    error.hidden = !turn.error;
    if (error.textContent !== (turn.error ?? "")) error.textContent = turn.error ?? "";
    figures.replaceChildren(...(isRunning ? [] : figuresOf(turn)));
  };
  return { node, update };
}

function heading(text) {
  return element("h2", {}, text);
}

// Unfolded while the model thinks and folded when it answers, unless somebody has decided otherwise.
function reasoningView(turn) {
  const title = element("span", {}, "");
  const kept = document.createTextNode("");
  const text = element(
    "div",
    { class: "thoughts", tabindex: "0", role: "group", "aria-label": "Reasoning" },
    kept,
  );
  let isDecided = false;
  const decide = () => (isDecided = true);
  const node = element(
    "details",
    { class: "reasoning", hidden: true },
    element("summary", { click: decide }, title),
    text,
  );
  const update = (isRunning) => {
    if (!turn.reasoning) return;
    const isThinking = isRunning && !turn.text;
    const isAtEnd = text.scrollHeight - text.scrollTop - text.clientHeight < 30;
    node.hidden = false;
    title.textContent = isThinking
      ? "Thinking…"
      : turn.thought
        ? `Thought for ${duration(turn.thought)}`
        : "Reasoning";
    node.classList.toggle("thinking", isThinking);
    if (!isDecided) node.open = isThinking;
    kept.appendData(turn.reasoning.slice(kept.length));
    if (isAtEnd) text.scrollTop = text.scrollHeight;
  };
  return { node, update };
}

function figuresOf(turn) {
  const { usage } = turn;
  const parts = [];
  if (turn.target) {
    const by =
      turn.profile && turn.profile !== turn.target ? `${turn.target} → ${turn.profile}` : turn.target;
    parts.push(element("span", { class: "by" }, by));
  }
  if (usage) {
    const cached = usage.prompt_tokens_details?.cached_tokens;
    const thought = usage.completion_tokens_details?.reasoning_tokens;
    parts.push(tokens(usage.prompt_tokens, "in", cached && `${compact(cached)} cached`));
    parts.push(tokens(usage.completion_tokens, "out", thought && `${compact(thought)} reasoning`));
    const cost = usage.cost == null ? "cost unknown" : money(usage.cost, usage.cost_currency ?? "USD");
    parts.push(element("span", { class: "cost" }, turn.cached ? "from the cache" : cost));
  }
  if (turn.seconds) parts.push(element("span", {}, duration(turn.seconds)));
  if (turn.stopped) parts.push(element("span", { class: "note" }, "Stopped"));
  if (FINISHES[turn.finish]) parts.push(element("span", { class: "note" }, FINISHES[turn.finish]));
  return parts;
}

function tokens(number, direction, part) {
  return element(
    "span",
    { title: `${count(number)} tokens ${direction}` },
    `${compact(number)} ${direction}${part ? ` (${part})` : ""}`,
  );
}

function editButton(node, shown, bar, text, save, edit) {
  const begin = () => {
    const input = element("textarea", { "aria-label": "Text of the turn", rows: "3" });
    const end = () => {
      form.remove();
      shown.hidden = bar.hidden = false;
      button.focus();
    };
    const submit = (event) => {
      event.preventDefault();
      end();
      edit(input.value);
    };
    const keydown = (event) => {
      if (event.key === "Escape") end();
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
    };
    const form = element(
      "form",
      { class: "editor", submit, keydown },
      input,
      element(
        "div",
        { class: "actions" },
        element("button", { type: "submit", class: "primary" }, save),
        element("button", { type: "button", click: end }, "Cancel"),
      ),
    );
    input.value = text();
    input.rows = Math.min(input.value.split("\n").length + 1, 16);
    shown.hidden = bar.hidden = true;
    shown.after(form);
    input.focus();
  };
  const button = element("button", { type: "button", class: "quiet", click: begin }, "Edit");
  return button;
}
