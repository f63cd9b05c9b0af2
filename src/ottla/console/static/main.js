// Which view is shown (by the part of the address after #), and how it stays fresh.

import { element } from "./dom.js";
import { Refresher } from "./refresh.js";
import { deadLetters, deadLetterTopic } from "./views/dead_letters.js";
import { group, groups } from "./views/groups.js";
import { overview } from "./views/overview.js";
import { topic } from "./views/topic.js";
import { topics } from "./views/topics.js";
import { transactions } from "./views/transactions.js";

const VIEWS = [
  [/^#?\/?$/, overview],
  [/^#\/topics$/, topics],
  [/^#\/topics\/([^/]+)$/, topic],
  [/^#\/groups$/, groups],
  [/^#\/groups\/([^/]+)$/, group],
  [/^#\/dead-letters$/, deadLetters],
  [/^#\/dead-letters\/([^/]+)$/, deadLetterTopic],
  [/^#\/transactions$/, transactions],
];

const main = document.querySelector("main");
const connection = document.getElementById("connection");
let refresher = null;

function show() {
  refresher?.close();
  const address = window.location.hash;
  refresher = new Refresher((text) => (connection.textContent = text));
  markCurrent(address);
  for (const [pattern, view] of VIEWS) {
    const found = pattern.exec(address);
    if (found) {
      main.replaceChildren(...view(refresher, ...found.slice(1).map(decodeURIComponent)));
      refresher.start();
      return;
    }
  }
  main.replaceChildren(element("h1", {}, "There is no such page."));
}

function markCurrent(address) {
  const section = `#/${address.split("/")[1] ?? ""}`;
  for (const each of document.querySelectorAll("header nav a")) {
    if (each.getAttribute("href") === section) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  }
}

window.addEventListener("hashchange", show);
show();
