// Shows Markdown: paragraphs, headings, lists, quotes, tables and code, as nodes and never as HTML.

import { copyButton } from "./copying.js";
import { element } from "./dom.js";
import { inline } from "./inline.js";

const FENCE = /^( {0,3})(`{3,}|~{3,})[ \t]*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+|$)/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?:( {1,4})(?=\S)|[ \t]|$)/;
const TASK = /^\[([ xX])\] +/;
const DEEPEST = 10;

/**
 * Shows `text` in `container`. Called again with more text, it leaves the blocks that are the same,
 * and with them what is selected there, and makes anew the rest.
 */
export function showMarkdown(container, text) {
  const shown = container.children;
  const blocks = parse(text.replaceAll("\r\n", "\n").replaceAll("\t", "    ").split("\n"), 0);
  const before = sources.get(container) ?? [];
  let same = 0;
  while (same < blocks.length && same < shown.length && before[same] === blocks[same].source) same += 1;
  while (shown.length > same) shown[shown.length - 1].remove();
  for (const block of blocks.slice(same)) container.append(block.show());
  sources.set(
    container,
    blocks.map((block) => block.source),
  );
}

const sources = new WeakMap();

// The blocks of some lines: each with its source, and a function that makes its element.
function parse(lines, depth) {
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    if (!lines[at].trim()) {
      at += 1;
      continue;
    }
    const { end, show } = blockAt(lines, at, depth);
    blocks.push({ source: lines.slice(at, end).join("\n"), show });
    at = end;
  }
  return blocks;
}

function blockAt(lines, at, depth) {
  const line = lines[at];
  const fence = FENCE.exec(line);
  if (fence) return code(lines, at, fence);
  if (line.startsWith("    ")) return indentedCode(lines, at);
  const heading = HEADING.exec(line);
  if (heading) return headingOf(line, at, heading);
  if (isRule(line)) return { end: at + 1, show: () => element("hr") };
  if (depth < DEEPEST) {
    if (QUOTE.test(line)) return quote(lines, at, depth);
    if (ITEM.test(line)) return list(lines, at, depth);
  }
  if (isTable(lines, at)) return table(lines, at);
  return paragraph(lines, at);
}

function nested(lines, depth) {
  return parse(lines, depth + 1).map((block) => block.show());
}

function code(lines, at, [, indent, ticks, info]) {
  const ends = (line) => {
    const trimmed = line.trim();
    return trimmed.length >= ticks.length && trimmed === ticks[0].repeat(trimmed.length);
  };
  let end = at + 1;
  while (end < lines.length && !ends(lines[end])) end += 1;
  const text = lines.slice(at + 1, end).map((line) => withoutIndent(line, indent.length));
  const language = info.trim().split(/\s/)[0];
  return { end: Math.min(end + 1, lines.length), show: () => codeBlock(text.join("\n"), language) };
}

function indentedCode(lines, at) {
  let end = at;
  for (
    let next = at;
    next < lines.length && (lines[next].startsWith("    ") || !lines[next].trim());
    next += 1
  ) {
    if (lines[next].trim()) end = next + 1;
  }
  const text = lines.slice(at, end).map((line) => line.slice(4));
  return { end, show: () => codeBlock(text.join("\n"), "") };
}

function codeBlock(text, language) {
  const name = language ? `Code, ${language}` : "Code";
  return element(
    "figure",
    { class: "code" },
    element(
      "figcaption",
      {},
      element("span", {}, language || "code"),
      copyButton(() => text),
    ),
    element("pre", { tabindex: "0", role: "group", "aria-label": name }, element("code", {}, text)),
  );
}

function headingOf(line, at, [marks, { length }]) {
  const text = line
    .slice(marks.length)
    .trim()
    .replace(/(^| )#+$/, "");
  // Headings of an answer lie below those of the page.
  return { end: at + 1, show: () => element(`h${Math.min(length + 2, 6)}`, {}, inline(text.trim())) };
}

function isRule(line) {
  return /^(-{3,}|\*{3,}|_{3,})$/.test(line.replaceAll(" ", ""));
}

function quote(lines, at, depth) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  const inner = lines.slice(at, end).map((line) => line.replace(QUOTE, ""));
  return { end, show: () => element("blockquote", {}, nested(inner, depth)) };
}

function list(lines, at, depth) {
  const [, , marker] = ITEM.exec(lines[at]);
  const isOrdered = /\d/.test(marker);
  const kind = marker.at(-1);
  const items = [];
  let end = at;
  let loose = false;
  while (end < lines.length) {
    const found = ITEM.exec(lines[end]);
    if (!found || found[2].at(-1) !== kind || isRule(lines[end])) break;
    const item = itemAt(lines, end, found);
    items.push(item.lines);
    loose ||= item.blankInside || (item.blankAfter && ITEM.exec(lines[item.next] ?? "")?.[2].at(-1) === kind);
    end = item.next;
  }
  const start = isOrdered && parseInt(marker, 10) !== 1 ? String(parseInt(marker, 10)) : null;
  const show = () =>
    element(
      isOrdered ? "ol" : "ul",
      { start },
      items.map((item) => listItem(item, depth, loose)),
    );
  return { end, show };
}

// The lines of one item, without its marker and indent, and where the next block begins.
function itemAt(lines, at, [whole, indent, marker, space]) {
  const width = indent.length + marker.length + (space?.length ?? 1);
  const inner = [lines[at].slice(whole.length)];
  let next = at + 1;
  let blanks = 0;
  let blankInside = false;
  for (; next < lines.length; next += 1) {
    const line = lines[next];
    if (!line.trim()) {
      blanks += 1;
      continue;
    }
    const inside = indentOf(line) >= Math.min(width, indent.length + 2);
    if (!inside && (blanks > 0 || ITEM.test(line) || startsBlock(lines, next))) break;
    blankInside ||= blanks > 0 && !ITEM.test(line);
    for (; blanks > 0; blanks -= 1) inner.push("");
    inner.push(withoutIndent(line, width));
  }
  return { lines: inner, next, blankInside, blankAfter: blanks > 0 };
}

function listItem(lines, depth, loose) {
  const task = TASK.exec(lines[0]);
  const rest = task ? [lines[0].slice(task[0].length), ...lines.slice(1)] : lines;
  const children = nested(rest, depth).flatMap((child) =>
    !loose && child.tagName === "P" ? [...child.childNodes] : [child],
  );
  if (!task) return element("li", {}, children);
  const done = task[1] !== " ";
  const name = done ? "done" : "to do";
  const box = element("input", { type: "checkbox", disabled: true, checked: done, "aria-label": name });
  return element("li", { class: "task" }, box, " ", children);
}

function isTable(lines, at) {
  if (!lines[at].includes("|") || !lines[at + 1]?.includes("-")) return false;
  const rules = cells(lines[at + 1]);
  return rules.every((cell) => /^:?-+:?$/.test(cell)) && rules.length === cells(lines[at]).length;
}

function table(lines, at) {
  const sides = cells(lines[at + 1]).map((rule) =>
    rule.endsWith(":") ? (rule.startsWith(":") ? "center" : "end") : null,
  );
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|") && lines[end].trim()) end += 1;
  const row = (tag, line) => {
    const texts = cells(line);
    const made = sides.map((side, column) => element(tag, { class: side }, inline(texts[column] ?? "")));
    return element("tr", {}, made);
  };
  const show = () =>
    element(
      "div",
      { class: "scrolls", tabindex: "0", role: "group", "aria-label": "Table" },
      element(
        "table",
        {},
        element("thead", {}, row("th", lines[at])),
        element(
          "tbody",
          {},
          lines.slice(at + 2, end).map((line) => row("td", line)),
        ),
      ),
    );
  return { end, show };
}

function cells(line) {
  const found = [""];
  const inner = line.trim().replace(/^\|/, "");
  for (let at = 0; at < inner.length; at += 1) {
    if (inner[at] === "\\" && inner[at + 1] === "|") {
      found[found.length - 1] += "|";
      at += 1;
    } else if (inner[at] === "|") {
      found.push("");
    } else {
      found[found.length - 1] += inner[at];
    }
  }
  if (found.length > 1 && !found.at(-1).trim()) found.pop();
  return found.map((cell) => cell.trim());
}

function paragraph(lines, at) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() && !startsBlock(lines, end)) end += 1;
  const text = lines.slice(at, end).map((line) => line.trim());
  return { end, show: () => element("p", {}, inline(text.join("\n"))) };
}

// Whether a line ends the paragraph before it.
function startsBlock(lines, at) {
  const line = lines[at];
  const item = ITEM.exec(line);
  return (
    FENCE.test(line) ||
    HEADING.test(line) ||
    QUOTE.test(line) ||
    isRule(line) ||
    (item !== null && line.trim() !== item[2] && (!/\d/.test(item[2]) || parseInt(item[2], 10) === 1)) ||
    isTable(lines, at)
  );
}

function indentOf(line) {
  return line.length - line.trimStart().length;
}

function withoutIndent(line, most) {
  return line.slice(Math.min(indentOf(line), most));
}
