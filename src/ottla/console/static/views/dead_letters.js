import { call, path } from "../api.js";
import { element, link, notice, panel, table } from "../dom.js";
import { bytesOrText, count, plural, time } from "../text.js";

const LOOKED_AT_MAX = 100;

export function deadLetters(page) {
  return [
    element("h1", {}, "Dead letters"),
    panel(
      null,
      page.live(
        async (signal) => (await call("/dead-letters", { signal })).topics,
        (found) =>
          table(
            [
              ["Topic", (each) => link(`#/dead-letters/${encodeURIComponent(each.topic)}`, each.topic)],
              ["Letters", (each) => count(each.letters), "number"],
            ],
            found,
            "No queue has a dead-letter topic.",
          ),
      ),
    ),
  ];
}

export function deadLetterTopic(page, name) {
  const outcome = notice();
  const redrive = async (body, question) => {
    if (question && !window.confirm(question)) return;
    try {
      const { redriven } = await call(path`/dead-letters/${name}` + ":redrive", { method: "POST", body });
      outcome.done(`Sent ${plural(redriven, "letter")} again.`);
      page.refresh();
    } catch (error) {
      outcome.failed(error);
    }
  };
  const all = () => redrive({}, `Send all letters of ${name} to their queues again?`);
  return [
    element("h1", {}, name),
    panel(
      null,
      element("button", { onclick: all }, "Redrive all"),
      outcome.line,
      page.live(
        async (signal) =>
          (await call(path`/dead-letters/${name}` + `?max=${LOOKED_AT_MAX}`, { signal })).letters,
        (found) => letters(found, redrive),
      ),
    ),
  ];
}

function letters(found, redrive) {
  const again = ({ partition, offset }) =>
    element("button", { onclick: () => redrive({ partition, offset }) }, "Redrive");
  return table(
    [
      ["Written", (each) => element("span", { class: "mono quiet" }, time(each.timestamp))],
      ["From", (each) => (each.origin ? `${each.origin.topic}-${each.origin.partition}:${each.origin.offset}` : "")],
      ["Group", (each) => each.origin?.group ?? ""],
      ["Deliveries", (each) => (each.origin ? count(each.origin.delivery_count) : ""), "number"],
      ["Reason", (each) => each.origin?.reason ?? ""],
      ["Value", (each) => element("span", { class: "mono" }, bytesOrText(each, "value") ?? "null")],
      ["", (each) => (each.redriven ? element("span", { class: "quiet" }, "sent again") : again(each))],
    ],
    found,
    "No letter.",
  );
}
