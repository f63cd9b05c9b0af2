// Elements from data. Text is always set as text, so nothing that a record holds becomes markup.

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child != null));
  return made;
}

export const link = (href, text) => element("a", { href }, text);

export function panel(title, ...children) {
  return element("section", {}, title ? element("h2", {}, title) : null, ...children);
}

// `columns` are [title, cell of a row, class]; a cell is text or an element.
export function table(columns, rows, empty) {
  if (!rows.length) return element("p", { class: "quiet" }, empty);
  const head = columns.map(([title, , kind]) => element("th", { class: kind }, title));
  const lines = rows.map((row) =>
    element("tr", {}, columns.map(([, cell, kind]) => element("td", { class: kind }, cell(row)))),
  );
  return element("table", {}, element("thead", {}, element("tr", {}, head)), element("tbody", {}, lines));
}

export function tile(value, label, isBad = false) {
  const figure = element("b", { class: isBad ? "bad" : null }, value);
  return element("div", { class: "tile" }, figure, element("span", {}, label));
}

export function field(label, control, kind) {
  return element("label", { class: kind }, label, control);
}

// A line below a form that says what came of it.
export function notice() {
  const line = element("p", { class: "notice", role: "status", hidden: true });
  const show = (text, isBad) => {
    line.textContent = text;
    line.classList.toggle("bad", isBad);
    line.hidden = false;
  };
  return { line, done: (text) => show(text, false), failed: (error) => show(error.message, true) };
}
