// The chat page: what the controls do to the conversation, and what the page shows of it.

import { answer } from "./answering.js";
import { download, exported, keep, loaded, messagesBefore, onOtherTab } from "./conversation.js";
import { byId } from "./dom.js";
import { choose, loadTargets } from "./targets.js";
import { turnView } from "./turns.js";

const KEEP_EVERY = 1000;
const page = Object.fromEntries(
  [
    "composer",
    "empty",
    "export",
    "log",
    "new",
    "notice",
    "prompt",
    "send",
    "status",
    "stop",
    "system",
    "target",
    "turns",
  ].map((id) => [id, byId(id)]),
);
let conversation;
let views = [];
let running = null;

open();
loadTargets(page.target, conversation.target, fail);
onOtherTab(() => running || open());

page.composer.addEventListener("submit", (event) => {
  event.preventDefault();
  send();
});
page.prompt.addEventListener("keydown", (event) => {
  // Phones have no Shift+Enter, and some keyboards choose a word with Enter.
  const sends = event.key === "Enter" && !event.shiftKey && !event.isComposing;
  if (sends && !matchMedia("(pointer: coarse)").matches) {
    event.preventDefault();
    send();
  }
});
page.prompt.addEventListener("input", fitPrompt);
page.stop.addEventListener("click", stop);
addEventListener("keydown", (event) => event.key === "Escape" && stop());
page.target.addEventListener("change", () => {
  conversation.target = page.target.value;
  kept();
});
page.system.addEventListener("input", () => {
  conversation.system = page.system.value;
  kept();
});
page.export.addEventListener("click", () => {
  download(`conversation-${new Date().toISOString().slice(0, 10)}.json`, exported(conversation));
});
page.new.addEventListener("click", () => {
  if (conversation.turns.length && !confirm("Begin a new conversation? This one is not kept.")) return;
  stop();
  conversation.turns = [];
  show();
  kept();
  page.prompt.focus();
});
addEventListener("pagehide", () => {
  // Whoever leaves has stopped the answer; the browser would call it a broken connection.
  stop();
  kept();
});

/** Shows the conversation that the browser keeps. */
function open() {
  conversation = loaded();
  for (const turn of conversation.turns) {
    // A page that was left in the middle of an answer could not say so.
    if (turn.role === "assistant" && !turn.finish && !turn.error) turn.stopped = true;
  }
  page.system.value = conversation.system;
  byId("system-panel").open = conversation.system !== "";
  if (page.target.options.length) choose(page.target, conversation.target);
  show();
}

function show() {
  views = conversation.turns.map(viewOf);
  page.turns.replaceChildren(...views.map((view) => view.node));
  update();
  page.log.scrollTop = page.log.scrollHeight;
}

function viewOf(turn) {
  const view = turnView(turn, {
    edit: (text) => edit(turn, text),
    retry: () => ask(conversation.turns.indexOf(turn)),
  });
  view.update(false);
  return view;
}

function update() {
  const isRunning = running !== null;
  page.empty.hidden = conversation.turns.length > 0;
  page.export.disabled = conversation.turns.length === 0;
  page.send.hidden = isRunning;
  page.stop.hidden = !isRunning;
  page.turns.classList.toggle("busy", isRunning);
}

function send() {
  const text = page.prompt.value.trim();
  if (!text || running) return;
  page.prompt.value = "";
  fitPrompt();
  conversation.turns.push({ role: "user", text });
  ask(conversation.turns.length);
}

function edit(turn, text) {
  const index = conversation.turns.indexOf(turn);
  if (running || index < 0 || !text.trim()) return;
  turn.text = text.trim();
  if (turn.role === "user") {
    ask(index + 1);
    return;
  }
  views[index].update(false);
  kept();
}

/** Asks for the answer that is to stand at `index`; what stood there and after it goes. */
async function ask(index) {
  if (running) return;
  const turn = { role: "assistant", text: "", reasoning: "", target: page.target.value };
  conversation.target = page.target.value;
  conversation.turns.splice(index, Infinity, turn);
  running = new AbortController();
  show();
  fail("");
  announce("The answer is on its way.");
  const view = views[index];
  const drawing = drawer(view);
  view.update(true);
  const moveFocus = document.activeElement === document.body || document.activeElement === page.send;
  if (moveFocus) page.prompt.focus();
  kept();
  await answer(turn.target, messagesBefore(conversation, index), turn, running.signal, drawing.changed);
  drawing.end();
  running = null;
  update();
  if (document.activeElement === document.body) page.prompt.focus();
  announce(turn.error ? "" : turn.stopped ? "The answer was stopped." : spoken(view));
  kept();
}

function stop() {
  running?.abort();
}

/** Draws what has changed soon, and keeps it now and then: never slower than it comes in. */
function drawer(view) {
  let timer = 0;
  let pause = 30;
  let lastKept = performance.now();
  const draw = () => {
    timer = 0;
    const began = performance.now();
    following(() => view.update(true));
    if (began - lastKept > KEEP_EVERY) {
      kept();
      lastKept = began;
    }
    pause = Math.max(30, 2 * (performance.now() - began));
  };
  return {
    changed: () => (timer ||= setTimeout(draw, pause)),
    end: () => {
      clearTimeout(timer);
      following(() => view.update(false));
    },
  };
}

/** Stays at the end of the conversation while it grows, unless somebody has scrolled away. */
function following(change) {
  const { log } = page;
  const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 60;
  change();
  if (isAtEnd) log.scrollTop = log.scrollHeight;
}

function kept() {
  const isKept = keep(conversation);
  if (!isKept)
    fail("This conversation has become too long for the browser to keep. Export it to have it later.");
}

function fail(message) {
  page.notice.textContent = message;
  page.notice.hidden = message === "";
}

function announce(message) {
  page.status.textContent = message;
}

/** The answer for those who hear it, as a whole: a reader cannot follow words that keep coming. */
function spoken(view) {
  return `Answer: ${view.node.querySelector(".said").textContent.slice(0, 5000)}`;
}

function fitPrompt() {
  const { prompt } = page;
  prompt.rows =
    Math.min(Math.max(prompt.value.split("\n").length, Math.ceil(prompt.value.length / 80)), 10) || 1;
}
