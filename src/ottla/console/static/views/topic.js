import { call, path } from "../api.js";
import { element, field, notice, panel, table, tile } from "../dom.js";
import { count, rate } from "../text.js";
import { records } from "./records.js";
import { Sparkline } from "./sparkline.js";

export function topic(page, name) {
  const speed = new Sparkline();
  return [
    element("h1", {}, name),
    page.live(
      (signal) => call(path`/topics/${name}`, { signal }),
      (found) => [summary(found, speed), partitions(found)],
    ),
    records(page, name),
    publishing(name),
    configs(page, name),
    deletion(name),
  ];
}

function summary(found, speed) {
  const total = (field) => found.partitions.reduce((sum, each) => sum + each[field], 0);
  const ends = total("end_offset");
  speed.add(ends);
  return element(
    "div",
    { class: "tiles" },
    tile(count(ends - total("start_offset")), "offsets held"),
    tile(count(found.partition_count), "partitions"),
    tile(count(found.under_replicated_count), "under-replicated", found.under_replicated_count > 0),
    element(
      "div",
      { class: "tile wide" },
      element("span", {}, `${rate(speed.latest)} written, last two minutes`),
      speed.draw(),
    ),
  );
}

function partitions(found) {
  const outOfSync = (each) => each.replicas.filter((id) => !each.in_sync_replicas.includes(id));
  return panel(
    "Partitions",
    table(
      [
        ["Partition", (each) => String(each.id)],
        ["Leader", (each) => each.leader?.toString() ?? element("span", { class: "bad" }, "none")],
        ["Replicas", (each) => each.replicas.join(", ")],
        ["Out of sync", (each) => element("span", { class: "warn" }, outOfSync(each).join(", "))],
        ["Start", (each) => count(each.start_offset), "number"],
        ["End", (each) => count(each.end_offset), "number"],
      ],
      found.partitions,
    ),
  );
}

function publishing(name) {
  const key = element("input", {});
  const value = element("textarea", { required: true });
  const outcome = notice();
  const publish = async (event) => {
    event.preventDefault();
    const body = { topic: name, message: value.value, ...(key.value && { key: key.value }) };
    try {
      const report = await call("/publish", { method: "POST", body });
      outcome.done(`Written to partition ${report.partition} at offset ${report.offset}.`);
    } catch (error) {
      outcome.failed(error);
    }
  };
  return panel(
    "Publish",
    element(
      "form",
      { onsubmit: publish },
      field("Key", key),
      field("Value", value, "wide"),
      element("button", { class: "main" }, "Publish"),
    ),
    outcome.line,
  );
}

function configs(page, name) {
  const isSet = (config) => !config.default;
  return panel(
    "Configuration",
    page.live(
      async (signal) => (await call(path`/topics/${name}/configs`, { signal })).configs,
      (found) =>
        table(
          [
            ["Key", (config) => element("span", { class: "mono" }, config.name)],
            ["Value", (config) => element("span", { class: "mono" }, config.value ?? "(secret)")],
            ["Source", (config) => element("span", { class: "quiet" }, config.source)],
          ],
          found.filter(isSet),
          "Everything is at its default.",
        ),
    ),
  );
}

function deletion(name) {
  const outcome = notice();
  const remove = async () => {
    if (window.prompt(`This deletes all records of ${name} for everyone. Type its name to go on.`) !== name) return;
    try {
      await call(path`/topics/${name}`, { method: "DELETE" });
      window.location.hash = "#/topics";
    } catch (error) {
      outcome.failed(error);
    }
  };
  return panel(null, element("button", { class: "danger", onclick: remove }, "Delete this topic"), outcome.line);
}
