import Plotly from "plotly.js-basic-dist-min";

export default (place, points, series) => Plotly.newPlot(place, series.map((each) => ({
  type: "scatter", mode: "markers", name: each.author,
  x: each.points.map((point) => point.x), y: each.points.map((point) => point.y), text: each.points.map((point) => point.label),
})), { xaxis: { type: "log" }, yaxis: { type: "log" } });
