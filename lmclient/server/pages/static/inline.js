// Markdown within a line: emphasis, code, links. Builds nodes, in one pass and time linear in the text.

import { element } from "./dom.js";

const SPECIAL = /[\\`*_~[\]!<&\n]|https?:\/\//g;
const ESCAPED = /[!-/:-@[-`{-~]/;
const DESTINATION =
  /\(\s*(?:<([^<>\n]*)>|([^\s()]*(?:\([^\s()]*\)[^\s()]*)*))(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/y;
const IN_BRACKETS = /<(https?:\/\/[^\s<>]+)>/y;
const BREAK = /<br\s*\/?>/iy;
const BARE = /https?:\/\/[^\s<>`"]+/y;
const ENTITY = /&(amp|lt|gt|quot|nbsp);/y;
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', nbsp: "\u00a0" };
const PUNCTUATION = /[\p{P}\p{S}]/u;
const DEEPEST = 24;

/** The nodes of a piece of Markdown; HTML in it is text like any other. */
export function inline(text) {
  return new Inline(text).nodes();
}

/** A link to another site, or null if the address is not one of the web. */
export function link(address, children) {
  const url = parsed(address);
  if (!url || !["http:", "https:"].includes(url.protocol)) return null;
  const attributes = { href: url.href, target: "_blank", rel: "noopener noreferrer", title: url.href };
  return element("a", attributes, children);
}

function parsed(address) {
  try {
    return new URL(address);
  } catch {
    return null;
  }
}

// What has been opened but not closed yet lies on a stack: each frame holds the delimiter and the nodes
// since. A frame that is never closed dissolves into the one below, its delimiter being plain text.
class Inline {
  constructor(text) {
    this.text = text;
    this.at = 0;
    this.stack = [{ kind: "", opener: "", children: [] }];
    this.unclosedTicks = new Set();
  }

  nodes() {
    const { text } = this;
    while (this.at < text.length) {
      SPECIAL.lastIndex = this.at;
      const found = SPECIAL.exec(text);
      const next = found ? found.index : text.length;
      if (next > this.at) this.add(text.slice(this.at, next));
      this.at = next;
      if (found && !this.special(found[0])) this.literal(found[0][0]);
    }
    this.dissolve(0);
    return this.stack[0].children;
  }

  special(found) {
    switch (found) {
      case "\\":
        return this.escape();
      case "`":
        return this.code();
      case "*":
      case "_":
      case "~":
        return this.emphasis(found);
      case "[":
        return this.open("[");
      case "!":
        return this.text[this.at + 1] === "[" && this.open("![");
      case "]":
        return this.close();
      case "<":
        return this.inBrackets();
      case "&":
        return this.entity();
      case "\n":
        return this.newline(1);
      default:
        return this.bareLink();
    }
  }

  add(...nodes) {
    addTo(this.stack[this.stack.length - 1].children, nodes);
    return true;
  }

  literal(characters) {
    this.at += characters.length;
    return this.add(characters);
  }

  match(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found) this.at = pattern.lastIndex;
    return found;
  }

  escape() {
    const next = this.text[this.at + 1];
    if (next === "\n") return this.newline(2);
    if (next === undefined || !ESCAPED.test(next)) return false;
    this.at += 2;
    return this.add(next);
  }

  newline(length) {
    this.at += length;
    return this.add(element("br"));
  }

  entity() {
    const found = this.match(ENTITY);
    return found !== null && this.add(ENTITIES[found[1]]);
  }

  code() {
    const { text } = this;
    let start = this.at;
    while (text[start] === "`") start += 1;
    const ticks = start - this.at;
    const end = this.unclosedTicks.has(ticks) ? -1 : this.closingTicks(start, ticks);
    if (end < 0) {
      this.unclosedTicks.add(ticks);
      return this.literal("`".repeat(ticks));
    }
    let code = text.slice(start, end).replaceAll("\n", " ");
    if (code.trim() && code.startsWith(" ") && code.endsWith(" ")) code = code.slice(1, -1);
    this.at = end + ticks;
    return this.add(element("code", {}, code));
  }

  closingTicks(start, ticks) {
    const runs = /`+/g;
    runs.lastIndex = start;
    for (let run = runs.exec(this.text); run; run = runs.exec(this.text)) {
      if (run[0].length === ticks) return run.index;
    }
    return -1;
  }

  emphasis(kind) {
    const { text } = this;
    let end = this.at;
    while (text[end] === kind) end += 1;
    let count = end - this.at;
    const before = text[this.at - 1];
    const [opens, closes] = flanks(kind, before, text[end]);
    if (kind === "~" ? count !== 2 : count > 3) return this.literal(kind.repeat(count));
    this.at = end;
    while (count > 0 && closes) {
      const index = this.stack.findLastIndex((frame) => frame.kind === kind);
      if (index < 0) break;
      count -= this.wrap(index, kind, count);
    }
    if (count === 0) return true;
    const opener = kind.repeat(count);
    if (opens && this.stack.length < DEEPEST) {
      this.stack.push({ kind, opener, children: [] });
      return true;
    }
    return this.add(opener);
  }

  // Closes one level of emphasis; returns how many characters of the closer that takes.
  wrap(index, kind, count) {
    this.dissolve(index);
    const frame = this.stack.pop();
    const taken = Math.min(frame.opener.length, count, 2);
    const tag = kind === "~" ? "del" : taken === 2 ? "strong" : "em";
    const node = element(tag, {}, frame.children);
    if (frame.opener.length > taken) {
      this.stack.push({ kind, opener: frame.opener.slice(taken), children: [node] });
    } else {
      this.add(node);
    }
    return taken;
  }

  open(opener) {
    if (this.stack.length >= DEEPEST) return false;
    this.stack.push({ kind: "[", opener, children: [] });
    this.at += opener.length;
    return true;
  }

  close() {
    const index = this.stack.findLastIndex((frame) => frame.kind === "[");
    if (index < 0) return false;
    this.at += 1;
    const found = this.match(DESTINATION);
    const { length } = this.stack;
    if (found) this.dissolve(index);
    const anchor = found && linkAround(found[1] ?? found[2], this.stack[index].children);
    if (anchor) {
      this.stack.pop();
      return this.add(anchor);
    }
    if (!found && length - 1 > index) {
      // Brackets that are no link may stand around half of an emphasis, so only they dissolve.
      const frame = this.stack[index];
      const { children } = this.stack[index - 1];
      addTo(children, [frame.opener]);
      addTo(children, frame.children);
      this.stack.splice(index, 1);
      return this.add("]");
    }
    this.dissolve(index - 1);
    return this.add("]", found ? found[0] : "");
  }

  inBrackets() {
    if (this.match(BREAK)) return this.add(element("br"));
    const found = this.match(IN_BRACKETS);
    return found !== null && this.add(link(found[1], [found[1]]) ?? found[0]);
  }

  bareLink() {
    const start = this.at;
    if (start > 0 && /\w/.test(this.text[start - 1])) return false;
    const found = this.match(BARE);
    if (!found) return false;
    const address = withoutEnd(found[0]);
    this.at = start + address.length;
    return this.add(link(address, [address]) ?? address);
  }

  // Makes all frames above the given one part of it.
  dissolve(index) {
    const { children } = this.stack[index];
    for (const frame of this.stack.splice(index + 1)) {
      addTo(children, [frame.opener]);
      addTo(children, frame.children);
    }
  }
}

// Text beside text is one text: a page of a hundred thousand nodes would be slow.
function addTo(children, nodes) {
  for (const node of nodes) {
    const last = children.length - 1;
    if (typeof node === "string" && typeof children[last] === "string") children[last] += node;
    else children.push(node);
  }
}

function linkAround(address, children) {
  const anchor = link(address, children);
  // A link cannot hold another one, such as an address that is the text of its own link.
  for (const inner of anchor?.querySelectorAll("a") ?? []) inner.replaceWith(inner.textContent);
  if (anchor && !anchor.textContent.trim()) anchor.textContent = anchor.href;
  return anchor;
}

// Whether delimiters between these two characters may open and close emphasis, as CommonMark has it.
function flanks(kind, before = " ", after = " ") {
  const [spaceBefore, spaceAfter] = [/\s/.test(before), /\s/.test(after)];
  const [markBefore, markAfter] = [PUNCTUATION.test(before), PUNCTUATION.test(after)];
  const left = !spaceAfter && (!markAfter || spaceBefore || markBefore);
  const right = !spaceBefore && (!markBefore || spaceAfter || markAfter);
  if (kind !== "_") return [left, right];
  return [left && (!right || markBefore), right && (!left || markAfter)];
}

// Without the punctuation that belongs to the sentence around the address.
function withoutEnd(address) {
  let end = address.length;
  let unopened = 0;
  for (const character of address) {
    if (character === "(") unopened -= 1;
    if (character === ")") unopened += 1;
  }
  for (; end > 0; end -= 1) {
    const last = address[end - 1];
    if (last === ")" && unopened > 0) unopened -= 1;
    else if (!".,;:!?'*_~]}|".includes(last)) break;
  }
  return address.slice(0, end);
}
