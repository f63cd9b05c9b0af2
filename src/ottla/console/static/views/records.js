// Records of a topic: the newest ones, those from an offset or a time on, or new ones as they come.

import { call, mapFew, path } from "../api.js";
import { element, field, notice, panel } from "../dom.js";
import { bytesOrText, laidOut, time } from "../text.js";

const SHOWN_MAX = 200;
const READ_MAX = 100;
const FOLDED_CHARACTERS = 120;
const PARTITIONS_MAX = 24;
const HEAD = ["Offset", "Time (UTC)", "Key", "Value", "Headers"];

export function records(page, name) {
  const partition = element("input", { type: "number", min: 0, placeholder: "all" });
  const from = element(
    "select",
    {},
    ["newest", "earliest", "offset", "time"].map((each) => element("option", {}, each)),
  );
  const start = element("input", { placeholder: "17, or 2026-01-31T12:00:00Z" });
  const rows = element("tbody", {});
  const outcome = notice();
  const follow = new Follower(page, name, rows, outcome);
  const read = async (event) => {
    event?.preventDefault();
    follow.stop();
    try {
      const found = await find(name, partition.value, from.value, start.value.trim());
      rows.replaceChildren(...found.map(row));
      outcome.done(found.length ? "" : "No record there.");
    } catch (error) {
      outcome.failed(error);
    }
  };
  read();
  return panel(
    "Records",
    element(
      "form",
      { onsubmit: read },
      field("Partition", partition),
      field("From", from),
      field("Offset or time", start),
      element("button", { class: "main" }, "Read"),
      follow.button,
    ),
    outcome.line,
    element("table", {}, element("thead", {}, HEAD.map((title) => element("th", {}, title))), rows),
  );
}

async function find(name, partition, from, start) {
  if (partition) return findIn(name, partition, from, start);
  const { partitions } = await call(path`/topics/${name}`);
  const ids = partitions.map((each) => each.id).slice(0, PARTITIONS_MAX);
  const found = (await mapFew(ids, (id) => findIn(name, id, from, start))).flat();
  const direction = from === "newest" ? -1 : 1;
  return found.sort((one, other) => direction * (one.timestamp - other.timestamp)).slice(0, READ_MAX);
}

async function findIn(name, partition, from, start) {
  const base = path`/topics/${name}/partitions/${partition}/records`;
  const read = (query) => call(`${base}?max=${READ_MAX}&${new URLSearchParams(query)}`);
  if (from === "earliest") return (await read({ offset: "earliest" })).records;
  if (from !== "newest") return (await read({ [from]: start })).records;
  const { high_watermark: end, log_start_offset: first } = await read({ offset: "latest" });
  return (await read({ offset: Math.max(first, end - READ_MAX) })).records.reverse();
}

// Shows new records of all partitions, the newest first, until it is told to stop.
class Follower {
  #source = null;
  #name;
  #rows;
  #outcome;

  constructor(page, name, rows, outcome) {
    this.#name = name;
    this.#rows = rows;
    this.#outcome = outcome;
    const toggle = () => (this.#source ? this.stop() : this.#begin());
    this.button = element("button", { type: "button", onclick: toggle }, "Follow");
    page.onClose(() => this.stop());
  }

  stop() {
    this.#source?.close();
    this.#source = null;
    this.button.textContent = "Follow";
  }

  #begin() {
    this.#rows.replaceChildren();
    this.button.textContent = "Stop";
    this.#source = new EventSource(path`/topics/${this.#name}/stream`);
    this.#source.onopen = () => this.#outcome.done("New records appear here.");
    this.#source.onmessage = (event) => {
      this.#rows.prepend(row(JSON.parse(event.data)));
      if (this.#rows.childElementCount > SHOWN_MAX) this.#rows.lastElementChild.remove();
    };
    this.#source.onerror = () => this.#outcome.failed(new Error("The stream broke off; connecting again."));
  }
}

export function row(record) {
  const value = bytesOrText(record, "value");
  const headers = record.headers.map((each) => `${each.name}: ${bytesOrText(each, "value")}`);
  return element(
    "tr",
    {},
    element("td", { class: "mono" }, `${record.partition}:${record.offset}`),
    element("td", { class: "mono quiet" }, time(record.timestamp)),
    element("td", { class: "mono" }, bytesOrText(record, "key") ?? element("span", { class: "quiet" }, "no key")),
    element("td", { class: "mono value" }, value === null ? tombstone() : folded(value)),
    element("td", { class: "mono quiet" }, headers.join("\n")),
  );
}

const tombstone = () => element("span", { class: "quiet" }, "null");

function folded(text) {
  if (text.length <= FOLDED_CHARACTERS) return text;
  const first = element("summary", {}, `${text.slice(0, FOLDED_CHARACTERS)}…`);
  return element("details", {}, first, element("pre", {}, laidOut(text)));
}
