import { call } from "../api.js";
import { element, field, link, notice, panel, table } from "../dom.js";
import { count } from "../text.js";

export function topics(page) {
  const filter = element("input", { type: "search", oninput: () => page.refresh() });
  const internal = element("input", { type: "checkbox", onchange: () => page.refresh() });
  const isShown = (topic) =>
    (internal.checked || !topic.internal) && topic.name.toLowerCase().includes(filter.value.toLowerCase());
  return [
    element("h1", {}, "Topics"),
    panel(
      null,
      element("div", { class: "row" }, field("Filter", filter), field("Internal topics", internal, "check")),
      page.live(
        async (signal) => (await call("/topics", { signal })).topics,
        (found) => list(found.filter(isShown)),
      ),
    ),
    creation(page),
  ];
}

function list(rows) {
  return table(
    [
      ["Topic", (topic) => link(`#/topics/${encodeURIComponent(topic.name)}`, topic.name)],
      ["Partitions", (topic) => count(topic.partition_count), "number"],
      ["Replicas", (topic) => count(topic.replication_factor), "number"],
      ["Health", health],
    ],
    rows,
    "No topic.",
  );
}

function health(topic) {
  if (topic.leaderless_count) {
    return element("span", { class: "bad" }, `${topic.leaderless_count} without a leader`);
  }
  if (topic.under_replicated_count) {
    return element("span", { class: "warn" }, `${topic.under_replicated_count} under-replicated`);
  }
  return element("span", { class: "quiet" }, "healthy");
}

function creation(page) {
  const name = element("input", { required: true, maxlength: 249, pattern: "[a-zA-Z0-9._\\-]+" });
  const partitions = element("input", { type: "number", min: 1, value: 1 });
  const outcome = notice();
  const create = async (event) => {
    event.preventDefault();
    try {
      await call("/topics", { method: "POST", body: { name: name.value, partitions: Number(partitions.value) } });
      outcome.done(`Created ${name.value}.`);
      page.refresh();
    } catch (error) {
      outcome.failed(error);
    }
  };
  const button = element("button", { class: "main" }, "Create");
  return panel(
    "New topic",
    element("form", { onsubmit: create }, field("Name", name), field("Partitions", partitions), button),
    outcome.line,
  );
}
