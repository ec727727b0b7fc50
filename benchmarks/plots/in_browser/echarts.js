import { ScatterChart } from "echarts/charts";
import { GridComponent, LegendComponent, TooltipComponent } from "echarts/components";
import { init, use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";

use([ScatterChart, GridComponent, LegendComponent, TooltipComponent, SVGRenderer]);

export default (place, points, series) => init(place, null, { renderer: "svg", width: 460, height: 220 }).setOption({
  animation: false, xAxis: { type: "log" }, yAxis: { type: "log" }, legend: {}, tooltip: {},
  series: series.map((each) => ({ type: "scatter", name: each.author, data: each.points.map((point) => [point.x, point.y]) })),
});
