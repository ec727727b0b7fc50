// Draws with the library that the page was bundled with, and says what came of it; `points` is in points.js.
import draw from "library";

const violations = [];
document.addEventListener("securitypolicyviolation", (event) => violations.push(event.effectiveDirective));
window.addEventListener("error", (event) => violations.push(event.message));
const place = document.getElementById("place");
const authors = [...new Set(points.map((point) => point.author))];
const series = authors.map((author) => ({ author, points: points.filter((point) => point.author === author) }));

const start = performance.now();
Promise.resolve()
  .then(() => draw(place, points, series))
  .catch((error) => violations.push(String(error)))
  .then(() => requestAnimationFrame(() => setTimeout(() => {
    window.result = {
      drawn_ms: performance.now() - start - 100,
      violations: [...new Set(violations)].sort(),
      elements: place.querySelectorAll("svg path, svg circle").length,
      canvas: place.querySelectorAll("canvas").length > 0,
      tab_stops: place.querySelectorAll("a, button, [tabindex='0']").length,
    };
  }, 100)));
