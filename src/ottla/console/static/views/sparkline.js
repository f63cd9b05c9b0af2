// A rate over time, from a total that is looked at now and then.

const KEPT_MS = 120_000;
const SVG = "http://www.w3.org/2000/svg";

export class Sparkline {
  #samples = []; // [when it was looked at, total]

  add(total) {
    const now = performance.now();
    this.#samples.push([now, total]);
    while (this.#samples[0][0] < now - KEPT_MS) this.#samples.shift();
  }

  get latest() {
    return this.#rates().at(-1)?.[1] ?? 0;
  }

  draw() {
    const rates = this.#rates();
    const highest = Math.max(1, ...rates.map(([, each]) => each));
    const last = rates.at(-1)?.[0] ?? 0;
    const points = rates.map(([when, each]) => {
      const x = 100 - ((last - when) / KEPT_MS) * 100;
      return `${x.toFixed(2)} ${(38 - (each / highest) * 36).toFixed(2)}`;
    });
    const drawing = document.createElementNS(SVG, "svg");
    drawing.setAttribute("viewBox", "0 0 100 40");
    drawing.setAttribute("preserveAspectRatio", "none");
    drawing.setAttribute("class", "spark");
    const line = document.createElementNS(SVG, "path");
    line.setAttribute("d", points.length > 1 ? `M${points.join("L")}` : "");
    drawing.append(line);
    return drawing;
  }

  #rates() {
    return this.#samples.slice(1).map(([when, total], index) => {
      const [before, less] = this.#samples[index];
      return [when, Math.max(0, total - less) / ((when - before) / 1000)];
    });
  }
}
