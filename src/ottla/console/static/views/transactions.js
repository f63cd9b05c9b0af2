import { call, path } from "../api.js";
import { element, notice, panel, table } from "../dom.js";

export function transactions(page) {
  const outcome = notice();
  const abort = async (id) => {
    if (!window.confirm(`Abort the transaction of ${id}? Its producer will be fenced.`)) return;
    try {
      await call(path`/transactions/${id}` + ":abort", { method: "POST" });
      outcome.done(`Aborted the transaction of ${id}.`);
      page.refresh();
    } catch (error) {
      outcome.failed(error);
    }
  };
  const end = (each) =>
    each.state === "Ongoing"
      ? element("button", { class: "danger", onclick: () => abort(each.transactional_id) }, "Abort")
      : "";
  return [
    element("h1", {}, "Transactions"),
    panel(
      null,
      outcome.line,
      page.live(
        async (signal) => (await call("/transactions", { signal })).transactions,
        (found) =>
          table(
            [
              ["Transactional id", (each) => element("span", { class: "mono" }, each.transactional_id)],
              ["State", (each) => each.state],
              ["Producer id", (each) => String(each.producer_id), "number"],
              ["Coordinator", (each) => String(each.coordinator), "number"],
              ["", end],
            ],
            found,
            "No transaction.",
          ),
      ),
    ),
  ];
}
