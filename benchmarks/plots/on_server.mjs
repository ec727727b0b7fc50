// Draws one scatter plot in each library that draws SVG without a browser; prints its cost as JSON.
// Usage: node on_server.mjs POINTS.json FOLDER, where FOLDER gets one SVG for each library
import { readFileSync, writeFileSync } from "node:fs";
import * as Plot from "@observablehq/plot";
import * as echarts from "echarts";
import { JSDOM } from "jsdom";
import * as vega from "vega";
import * as vegaLite from "vega-lite";

const [, , input, folder] = process.argv;
const points = JSON.parse(readFileSync(input, "utf8"));
const authors = [...new Set(points.map((point) => point.author))];
const { document } = new JSDOM("").window;
const vegaSpec = { ...JSON.parse(readFileSync("vega-lite.json", "utf8")), data: { values: points } };

const libraries = {
  "Observable Plot": () => Plot.plot({
    document, className: "plot", width: 460, height: 220, x: { type: "log" }, y: { type: "log" },
    marks: [Plot.dot(points, { x: "x", y: "y", fill: "author", symbol: "case", href: "link", title: "label" })],
  }).outerHTML,
  "Vega-Lite": async () => new vega.View(vega.parse(vegaLite.compile(vegaSpec).spec), { renderer: "none" }).toSVG(),
  "ECharts": () => {
    const chart = echarts.init(null, null, { renderer: "svg", ssr: true, width: 460, height: 220 });
    chart.setOption({
      animation: false, xAxis: { type: "log" }, yAxis: { type: "log" }, legend: {}, tooltip: {},
      series: authors.map((author) => ({
        type: "scatter", name: author,
        data: points.filter((point) => point.author === author).map((point) => [point.x, point.y, point.label]),
      })),
    });
    const svg = chart.renderToSVGString();
    chart.dispose();
    return svg;
  },
};

const result = {};
for (const [name, draw] of Object.entries(libraries)) {
  const one = await draw();
  const same = one === (await draw());
  const times = [];
  for (let count = 0; count < 40; count += 1) {
    const start = performance.now();
    await draw();
    times.push(performance.now() - start);
  }
  writeFileSync(`${folder}/${name}.svg`, one);
  result[name] = {
    fastest_ms: Math.min(...times), bytes: Buffer.byteLength(one), same_each_time: same,
    style_in_it: /<style|style="/.test(one), links: /<a[^>]*href/.test(one),
    colours_in_attributes: /(fill|stroke)="(#|rgb)/.test(one),
  };
}
console.log(JSON.stringify(result));
