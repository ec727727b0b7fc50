import { dot, plot } from "@observablehq/plot";

export default (place, points) => place.append(plot({
  x: { type: "log" }, y: { type: "log" },
  marks: [dot(points, { x: "x", y: "y", fill: "author", symbol: "case", href: "link", title: "label", tip: true })],
}));
