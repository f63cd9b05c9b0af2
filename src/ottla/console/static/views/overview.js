import { call } from "../api.js";
import { element, link, panel, table, tile } from "../dom.js";
import { count } from "../text.js";

export function overview(page) {
  return [element("h1", {}, "Overview"), page.live(load, draw)];
}

async function load(signal) {
  const [cluster, topics, groups, letters] = await Promise.all(
    ["/cluster", "/topics", "/groups", "/dead-letters"].map((each) => call(each, { signal })),
  );
  return { cluster, topics: topics.topics, groups: groups.groups, letters: letters.topics };
}

function draw({ cluster, topics, groups, letters }) {
  const sum = (rows, name) => rows.reduce((total, row) => total + row[name], 0);
  const own = topics.filter((topic) => !topic.internal);
  const underReplicated = sum(topics, "under_replicated_count");
  const leaderless = sum(topics, "leaderless_count");
  const letterCount = sum(letters, "letters");
  const fenced = cluster.brokers.filter((broker) => broker.is_fenced).length;
  return [
    element(
      "div",
      { class: "tiles" },
      tile(count(cluster.brokers.length - fenced), "active brokers"),
      tile(count(own.length), "topics"),
      tile(count(sum(own, "partition_count")), "partitions"),
      tile(count(groups.length), "groups"),
      tile(count(underReplicated), "under-replicated partitions", underReplicated > 0),
      tile(count(leaderless), "partitions without a leader", leaderless > 0),
      tile(count(letterCount), "dead letters", letterCount > 0),
    ),
    panel(
      "Brokers",
      table(
        [
          ["Id", (broker) => String(broker.id)],
          ["Address", (broker) => element("span", { class: "mono" }, `${broker.host}:${broker.port}`)],
          ["Rack", (broker) => broker.rack ?? ""],
          ["Role", (broker) => (broker.id === cluster.controller ? "controller" : "")],
          ["State", state],
        ],
        cluster.brokers,
        "No broker.",
      ),
      element("p", { class: "quiet" }, "Cluster ", element("span", { class: "mono" }, cluster.id)),
    ),
    unhealthy(topics),
  ];
}

const state = (broker) =>
  broker.is_fenced ? element("span", { class: "bad" }, "fenced") : element("span", {}, "active");

function unhealthy(topics) {
  const rows = topics.filter((topic) => topic.under_replicated_count || topic.leaderless_count);
  if (!rows.length) return null;
  return panel(
    "Topics that need attention",
    table(
      [
        ["Topic", (topic) => link(`#/topics/${encodeURIComponent(topic.name)}`, topic.name)],
        ["Under-replicated", (topic) => count(topic.under_replicated_count), "number"],
        ["Without a leader", (topic) => count(topic.leaderless_count), "number"],
      ],
      rows,
    ),
  );
}
