// Small helpers for elements and numbers. Text is only ever set as text.

export const $ = (id) => document.getElementById(id);

// An element with properties; children are nodes or texts.
export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

// Sets the text of a node if it is another one, so that nothing is drawn or read out twice.
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function attribute(node, name, value) {
  if (value === null || value === undefined) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

export function fixed(number, digits) {
  return typeof number === "number" ? number.toFixed(digits) : "–";
}

export const percent = (share, digits = 1) => (typeof share === "number" ? `${(share * 100).toFixed(digits)} %` : "–");

// Keeps one child of `parent` for each key, in order: `make` creates it, `update` fills it.
export function keyed(parent, known, items, key, make, update) {
  const seen = new Set();
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = key(item);
    seen.add(name);
    let node = known.get(name);
    if (!node) known.set(name, (node = make(item)));
    if (node === place) place = place.nextElementSibling;
    else parent.insertBefore(node, place);
    update(node, item);
  }
  for (const [name, node] of known) {
    if (seen.has(name)) continue;
    node.remove();
    known.delete(name);
  }
}

// Lines about what is shown, each with a level or none.
export function facts(list, lines) {
  while (list.children.length > lines.length) list.lastElementChild.remove();
  lines.forEach(([text, level], i) => {
    const item = list.children[i] ?? list.appendChild(el("li"));
    say(item, text);
    attribute(item, "data-level", level || null);
  });
}

// A canvas's context, with as many pixels as it has on the screen; units are those of CSS.
export function sharp(canvas) {
  const { width, height } = canvas.getBoundingClientRect();
  const scale = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// Tells whether a node is visible: it is in view, and its page's tab is not hidden. Returns a function that ends this.
export function whileShown(node, tell) {
  let inside = false;
  const look = () => tell(inside && !document.hidden);
  const observer = new IntersectionObserver((entries) => {
    inside = entries.at(-1).isIntersecting;
    look();
  });
  observer.observe(node);
  document.addEventListener("visibilitychange", look);
  return () => {
    observer.disconnect();
    document.removeEventListener("visibilitychange", look);
  };
}
