import uPlot from "uplot";

export default (place, points, series) => {
  const sorted = [...points].sort((one, other) => one.x - other.x);
  const shown = { paths: () => null, points: { show: true } };
  return new uPlot({
    width: 460, height: 220, scales: { x: { time: false, distr: 3 }, y: { distr: 3 } },
    series: [{}, ...series.map((each, index) => ({ label: each.author, stroke: `hsl(${60 * index} 70% 40%)`, ...shown }))],
  }, [
    sorted.map((point) => point.x),
    ...series.map((each) => sorted.map((point) => (point.author === each.author ? point.y : null))),
  ], place);
};
