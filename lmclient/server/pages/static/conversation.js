// The conversation: its turns, and where the browser keeps them.
//
// A turn is { role, text } and, from the model, { reasoning, target, finish, usage, profile, cached,
// seconds, thought, error, stopped } as far as they are known.

const KEY = "lmclient.conversation";

/** The conversation as it was left, or a new one. */
export function loaded() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY));
    if (Array.isArray(kept?.turns)) return { target: null, system: "", ...kept };
  } catch {
    // What cannot be read is not ours, or of an older version.
  }
  return { target: null, system: "", turns: [] };
}

/** Keeps the conversation; whether the browser had room for it. */
export function keep(conversation) {
  try {
    localStorage.setItem(KEY, JSON.stringify(conversation));
    return true;
  } catch {
    return false;
  }
}

/** Calls `changed` when another tab has kept its conversation. */
export function onOtherTab(changed) {
  addEventListener("storage", (event) => event.key === KEY && changed());
}

/** The messages that lead to the turn at `end`, as OpenAI's API takes them. */
export function messagesBefore(conversation, end) {
  const system = conversation.system.trim();
  const said = conversation.turns.slice(0, end).filter(({ text }) => text);
  return [
    ...(system ? [{ role: "system", content: system }] : []),
    ...said.map(({ role, text }) => ({ role, content: text })),
  ];
}

/** The whole conversation for a file, reasoning and figures included. */
export function exported(conversation) {
  const system = conversation.system.trim();
  const turns = conversation.turns.map(({ role, text, reasoning, ...about }) => ({
    role,
    content: text,
    ...(reasoning ? { reasoning_content: reasoning } : {}),
    ...(Object.keys(about).length ? { lmclient: about } : {}),
  }));
  const messages = [...(system ? [{ role: "system", content: system }] : []), ...turns];
  return { model: conversation.target, exported_at: new Date().toISOString(), messages };
}

/** Gives the browser a file to save. */
export function download(name, value) {
  const blob = new Blob([`${JSON.stringify(value, null, 2)}\n`], { type: "application/json" });
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(blob);
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 1000);
}
