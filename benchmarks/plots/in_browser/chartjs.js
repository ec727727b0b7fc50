import { Chart, Legend, LogarithmicScale, PointElement, ScatterController, Tooltip } from "chart.js";

Chart.register(Legend, LogarithmicScale, PointElement, ScatterController, Tooltip);

export default (place, points, series) => {
  new Chart(place.appendChild(document.createElement("canvas")), {
    type: "scatter", data: { datasets: series.map((each) => ({ label: each.author, data: each.points })) },
    options: { animation: false, scales: { x: { type: "logarithmic" }, y: { type: "logarithmic" } } },
  });
};
