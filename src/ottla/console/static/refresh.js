// Keeps the live parts of a view fresh: every two seconds while somebody looks, and with growing
// pauses while the gateway does not answer.

import { CallError } from "./api.js";
import { element } from "./dom.js";

const INTERVAL_MS = 2000;
const INTERVAL_MS_MAX = 30000;

export class Refresher {
  #parts = [];
  #closers = [];
  #abort = new AbortController();
  #timer = null;
  #pauseMs = INTERVAL_MS;
  #say;

  constructor(say) {
    this.#say = say;
    document.addEventListener("visibilitychange", () => this.refresh(), { signal: this.#abort.signal });
  }

  // A part of the view: what `draw` makes of what `load` finds.
  live(load, draw) {
    const container = element("div", {}, element("p", { class: "quiet" }, "Loading…"));
    this.#parts.push({ load, draw, container });
    return container;
  }

  // Called when another view is opened.
  onClose(close) {
    this.#closers.push(close);
  }

  start() {
    this.refresh();
  }

  close() {
    this.#abort.abort();
    clearTimeout(this.#timer);
    this.#closers.forEach((close) => close());
  }

  async refresh() {
    clearTimeout(this.#timer);
    if (document.hidden || this.#abort.signal.aborted) return;
    const outcomes = await Promise.all(this.#parts.map((part) => this.#refreshPart(part)));
    if (this.#abort.signal.aborted) return;
    const isUp = outcomes.every(Boolean);
    this.#pauseMs = isUp ? INTERVAL_MS : Math.min(this.#pauseMs * 2, INTERVAL_MS_MAX);
    this.#say(isUp ? "" : "No answer; trying again.");
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.refresh(), this.#pauseMs * (0.8 + 0.4 * Math.random()));
  }

  // Returns whether the gateway and its cluster answered.
  async #refreshPart({ load, draw, container }) {
    try {
      const data = await load(this.#abort.signal);
      if (!this.#abort.signal.aborted) container.replaceChildren(...[draw(data)].flat().filter(Boolean));
      return true;
    } catch (error) {
      if (this.#abort.signal.aborted) return true;
      if (!(error instanceof CallError)) throw error;
      const isDown = error.status === 0 || error.status >= 500;
      // What was seen last stays while nobody answers.
      if (!isDown || !container.dataset.seen) {
        container.replaceChildren(element("p", { class: "bad" }, error.message));
      }
      return !isDown;
    } finally {
      container.dataset.seen = "yes";
    }
  }
}
