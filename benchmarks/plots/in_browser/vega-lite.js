import { View, parse } from "vega";
import { expressionInterpreter } from "vega-interpreter";
import { compile } from "vega-lite";

export default (place, points) => {
  const { spec } = compile({
    data: { values: points }, mark: "point",
    encoding: {
      x: { field: "x", type: "quantitative", scale: { type: "log" } },
      y: { field: "y", type: "quantitative", scale: { type: "log" } },
      color: { field: "author" }, shape: { field: "case" }, href: { field: "link" }, tooltip: { field: "label" },
    },
  });
  return new View(parse(spec, null, { ast: true }), { expr: expressionInterpreter, renderer: "svg", container: place }).runAsync();
};
