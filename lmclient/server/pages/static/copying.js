// A button that copies.

import { element } from "./dom.js";

const SAID_FOR = 1500;

/** A button that puts what `text()` returns on the clipboard, and says for a moment whether it could. */
export function copyButton(text) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed";
    }
    setTimeout(() => (button.textContent = "Copy"), SAID_FOR);
  };
  const button = element("button", { type: "button", class: "quiet", click: copy }, "Copy");
  return button;
}
