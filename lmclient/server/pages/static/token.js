// The bearer token, kept until this tab is closed, and the dialog that asks for it.

import { byId, element } from "./dom.js";

const KEY = "lmclient.token";
let asking = null;

export function token() {
  return sessionStorage.getItem(KEY) ?? "";
}

/** Asks for a token; whether there is one now. All who ask at the same time share the dialog. */
export function askForToken(wasRefused) {
  asking ??= new Promise((resolve) => open(wasRefused, resolve)).finally(() => (asking = null));
  return asking;
}

function open(wasRefused, resolve) {
  const input = element("input", {
    id: "token",
    type: "password",
    autocomplete: "current-password",
    spellcheck: "false",
    required: true,
  });
  // The dialog's own `close` event waits for the page to be drawn, which it may not be for a while.
  const end = (entered) => {
    dialog.close();
    dialog.remove();
    resolve(entered);
  };
  const submit = (event) => {
    event.preventDefault();
    // A header cannot carry anything else, and no token has it.
    sessionStorage.setItem(KEY, input.value.trim().replace(/[^!-~]/g, ""));
    end(true);
  };
  const why = wasRefused ? "This token was not accepted. Try another one." : "This server asks who you are.";
  const dialog = element(
    "dialog",
    { "aria-labelledby": "token-title", cancel: () => end(false) },
    element(
      "form",
      { submit },
      element("h2", { id: "token-title" }, "Token needed"),
      element("p", {}, why),
      element("label", { for: "token" }, "Token"),
      input,
      element(
        "div",
        { class: "actions" },
        element("button", { type: "button", click: () => end(false) }, "Cancel"),
        element("button", { type: "submit", class: "primary" }, "Continue"),
      ),
    ),
  );
  (byId("dialogs") ?? document.body).append(dialog);
  dialog.showModal();
}
