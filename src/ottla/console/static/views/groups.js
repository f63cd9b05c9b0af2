import { call, mapFew, path } from "../api.js";
import { element, link, panel, table, tile } from "../dom.js";
import { count, plural, seconds } from "../text.js";

const DESCRIBED_MAX = 100;

export function groups(page) {
  return [element("h1", {}, "Groups"), panel(null, page.live(load, list))];
}

// The lag of each group is a call of its own, so only of the first ones.
async function load(signal) {
  const found = (await call("/groups", { signal })).groups;
  const described = await mapFew(found.slice(0, DESCRIBED_MAX), (each) =>
    call(path`/groups/${each.id}`, { signal }).catch(() => each),
  );
  return [...described, ...found.slice(DESCRIBED_MAX)];
}

function list(rows) {
  return table(
    [
      ["Group", (each) => link(`#/groups/${encodeURIComponent(each.id)}`, each.id)],
      ["Type", (each) => each.type],
      ["State", (each) => each.state],
      ["Members", (each) => (each.members ? count(each.members.length) : ""), "number"],
      ["Lag", (each) => (each.lag === undefined ? "" : plural(each.lag, "record")), "number"],
      ["Behind by", (each) => (each.lag_seconds === undefined ? "" : seconds(each.lag_seconds)), "number"],
    ],
    rows,
    "No group.",
  );
}

export function group(page, id) {
  return [
    element("h1", {}, id),
    page.live((signal) => call(path`/groups/${id}`, { signal }), describe),
  ];
}

function describe(found) {
  return [
    element(
      "div",
      { class: "tiles" },
      tile(found.state, `${found.type} group`),
      tile(count(found.members.length), "members"),
      tile(count(found.lag), "records behind"),
      tile(seconds(found.lag_seconds), "behind"),
    ),
    panel(
      "Partitions",
      table(
        [
          ["Topic", (each) => link(`#/topics/${encodeURIComponent(each.topic)}`, each.topic)],
          ["Partition", (each) => String(each.partition)],
          ["Offset", (each) => count(each.offset), "number"],
          ["End", (each) => count(each.end_offset), "number"],
          ["Lag", (each) => count(each.lag), "number"],
          ["Behind by", (each) => seconds(each.lag_seconds), "number"],
          ["Note", (each) => element("span", { class: "warn" }, each.note ?? "")],
        ],
        found.partitions,
        "No partition has an offset.",
      ),
    ),
    panel(
      "Members",
      table(
        [
          ["Client", (each) => each.client_id, "name"],
          ["Host", (each) => element("span", { class: "mono" }, each.host)],
          ["Member", (each) => element("span", { class: "mono quiet" }, each.id)],
          ["Partitions", (each) => each.partitions.map((at) => `${at.topic}-${at.partition}`).join(", "), "name"],
        ],
        found.members,
        "No member.",
      ),
    ),
  ];
}
