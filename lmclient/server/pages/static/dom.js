// Elements are made here, and text only ever becomes a text node.

/**
 * A new element. Attributes that are functions listen to the event of their name, `false` and null
 * are left out, `true` is an attribute without a value. Children are nodes, text, or arrays of them.
 */
export function element(tag, attributes = {}, ...children) {
  return furnished(document.createElement(tag), attributes, children);
}

/** The same for a drawing. */
export function drawn(tag, attributes = {}, ...children) {
  return furnished(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

export function byId(id) {
  return document.getElementById(id);
}

function furnished(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== false && value != null) made.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) if (child != null) made.append(child);
  return made;
}
