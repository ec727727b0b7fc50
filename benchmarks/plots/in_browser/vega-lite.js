import { View, parse } from "vega";
import { expressionInterpreter } from "vega-interpreter";
import { compile } from "vega-lite";
import plot from "./vega-lite.json";

export default (place, points) => {
  const { spec } = compile({ ...plot, data: { values: points } });
  return new View(parse(spec, null, { ast: true }), { expr: expressionInterpreter, renderer: "svg", container: place }).runAsync();
};
