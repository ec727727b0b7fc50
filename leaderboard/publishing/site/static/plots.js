// Plots: labels at the pointer and at the keyboard's focus, enlargement, and the choice of a case. Pages also work
// without this script. The state is kept by site.js, which is loaded before.
"use strict";

const NEAR_PIXELS = 18;
const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
tip.setAttribute("aria-hidden", "true"); // the marks themselves are named

function shownMarks(svg) {
  return [...svg.querySelectorAll(".mark:not(.off)")];
}

function show(mark) {
  hide();
  mark.classList.add("on");
  tip.textContent = mark.getAttribute("aria-label");
  (mark.closest("dialog") || document.body).append(tip);
  tip.hidden = false;
  const box = mark.querySelector("path").getBoundingClientRect();
  const left = box.left + (box.width - tip.offsetWidth) / 2;
  const above = box.top - tip.offsetHeight - 8;
  tip.style.left = `${Math.max(4, Math.min(left, document.documentElement.clientWidth - tip.offsetWidth - 4))}px`;
  tip.style.top = `${above > 4 ? above : box.bottom + 8}px`;
}

function hide() {
  tip.hidden = true;
  for (const mark of document.querySelectorAll(".mark.on")) mark.classList.remove("on");
}

// The mark that is nearest to the pointer, if one is near; of bars that it is on, any.
function nearest(svg, event) {
  let best = null, least = NEAR_PIXELS;
  for (const mark of shownMarks(svg)) {
    const box = mark.querySelector("path").getBoundingClientRect();
    const across = Math.max(box.left - event.clientX, 0, event.clientX - box.right);
    const down = Math.max(box.top - event.clientY, 0, event.clientY - box.bottom);
    const centre = Math.hypot(event.clientX - box.left - box.width / 2, event.clientY - box.top - box.height / 2);
    const far = Math.hypot(across, down) + centre / 1000;
    if (far < least) [best, least] = [mark, far];
  }
  return best;
}

// A plot is one stop of the tab key; the arrow keys go from mark to mark.
function enterAt(svg, entered) {
  for (const mark of svg.querySelectorAll(".mark")) mark.setAttribute("tabindex", "-1");
  if (entered) entered.setAttribute("tabindex", "0");
}

function step(event) {
  const svg = event.target.closest("svg.plot");
  if (event.key === "Escape") hide();
  if (!svg) return;
  const marks = shownMarks(svg), at = marks.indexOf(event.target.closest(".mark"));
  const to = { ArrowLeft: at - 1, ArrowUp: at - 1, ArrowRight: at + 1, ArrowDown: at + 1, Home: 0, End: marks.length - 1 }[event.key];
  if (at < 0 || to === undefined) return;
  event.preventDefault();
  const next = marks[Math.max(0, Math.min(to, marks.length - 1))];
  enterAt(svg, next);
  next.focus({ preventScroll: svg.closest("dialog") !== null });
}

function readable(svg) {
  for (const mark of svg.querySelectorAll(".mark")) {
    const title = mark.querySelector("title");
    if (title) { // the browser would show it beside ours
      mark.setAttribute("aria-label", title.textContent);
      title.remove();
    }
    if (!mark.hasAttribute("href")) mark.setAttribute("role", "img");
  }
  enterAt(svg, shownMarks(svg)[0]);
  const point = (event) => {
    const mark = nearest(svg, event);
    if (mark) show(mark); else hide();
  };
  svg.addEventListener("pointermove", point);
  svg.addEventListener("pointerdown", point);
  svg.addEventListener("pointerleave", hide);
}

// Words beside the marks, each where it hides nothing; where there is no such place, the mark keeps only its tooltip.
function label(svg, scale) {
  for (const old of svg.querySelectorAll("text.label")) old.remove();
  const gap = 8 * scale, marks = shownMarks(svg).filter((mark) => mark.dataset.short), { width } = svg.viewBox.baseVal;
  const taken = [...svg.querySelectorAll("text")].map((text) => text.getBBox());
  for (const mark of marks) {
    const box = mark.querySelector("path").getBBox(), half = 5 * scale;
    taken.push({ x: box.x + box.width / 2 - half, y: box.y + box.height / 2 - half, width: 2 * half, height: 2 * half });
  }
  for (const mark of marks) {
    const text = svg.appendChild(document.createElementNS(svg.namespaceURI, "text"));
    text.setAttribute("class", "label");
    text.textContent = mark.dataset.short;
    const box = mark.querySelector("path").getBBox(), size = text.getBBox();
    const x = box.x + box.width / 2, y = box.y + box.height / 2;
    const places = [
      [x + gap, y - size.height / 2], [x - gap - size.width, y - size.height / 2],
      [x - size.width / 2, y - gap - size.height], [x - size.width / 2, y + gap],
      [x + gap, y - gap - size.height], [x + gap, y + gap],
    ];
    const free = places.find(([left, top]) => left > 0 && left + size.width < width && top > 0 && taken.every((one) =>
      left > one.x + one.width || left + size.width < one.x || top > one.y + one.height || top + size.height < one.y));
    if (!free) { text.remove(); continue; }
    text.setAttribute("x", String(free[0]));
    text.setAttribute("y", String(free[1] - size.y)); // `size` was measured at zero
    taken.push({ x: free[0], y: free[1], width: size.width, height: size.height });
  }
}

// Lines grow with an enlarged plot; letters and marks keep their size, so that there is room for labels.
function fit(svg) {
  if (!svg || !svg.matches(".plot")) return;
  const scale = 1 / svg.getScreenCTM().a;
  svg.style.setProperty("--scale", String(scale));
  label(svg, scale);
}

function enlargeable(figures) {
  if (!figures.length || typeof HTMLDialogElement === "undefined") return;
  const dialog = document.createElement("dialog");
  const close = document.createElement("button");
  const place = document.createElement("div");
  close.type = "button";
  close.className = "enlarge";
  close.textContent = "Close";
  place.className = "enlarged";
  place.tabIndex = 0; // it scrolls on a narrow screen
  place.setAttribute("role", "region");
  place.setAttribute("aria-label", "Plot");
  close.addEventListener("click", () => dialog.close());
  dialog.setAttribute("aria-label", "Plot, enlarged");
  dialog.addEventListener("close", () => { document.body.append(tip); hide(); remember("plot", ""); });
  window.addEventListener("resize", () => fit(place.querySelector("svg.plot")));
  document.body.append(dialog);
  const open = (index) => {
    const figure = figures[index], legend = figure.closest("section")?.querySelector(".legend");
    const svg = figure.querySelector("svg").cloneNode(true);
    place.replaceChildren(svg);
    dialog.replaceChildren(close, place, figure.querySelector("figcaption").cloneNode(true));
    if (legend) place.before(legend.cloneNode(true));
    readable(svg);
    dialog.showModal();
    fit(svg);
    remember("plot", String(index + 1));
  };
  figures.forEach((figure, index) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "enlarge";
    button.textContent = "Enlarge";
    button.setAttribute("aria-label", `Enlarge: ${figure.querySelector("figcaption").textContent}`);
    button.addEventListener("click", () => open(index));
    figure.append(button);
  });
  const stored = parseInt(state.get("plot") || "", 10);
  if (stored >= 1 && stored <= figures.length) open(stored - 1);
}

// One select for the plots and the table of a board.
function choosable(legend) {
  const section = legend.closest("section"), key = `${section.querySelector("h2").id}.case`;
  const names = [...legend.querySelectorAll("[data-case]")].map((each) => each.textContent.trim());
  if (names.length < 2) return;
  const tools = document.createElement("div"), words = document.createElement("label"), select = document.createElement("select");
  tools.className = "tools";
  select.append(new Option("all", ""), ...names.map((name, index) => new Option(name, String(index))));
  words.append("Case ", select);
  tools.append(words);
  legend.before(tools);
  const apply = () => {
    for (const each of section.querySelectorAll("[data-case]")) {
      each.classList.toggle("off", select.value !== "" && each.dataset.case !== select.value);
    }
    for (const svg of section.querySelectorAll("svg.plot")) enterAt(svg, shownMarks(svg)[0]);
  };
  select.addEventListener("change", () => { apply(); remember(key, select.value); });
  const stored = state.get(key);
  if (stored && Number(stored) < names.length) select.value = stored;
  apply();
}

document.body.append(tip);
document.querySelectorAll("svg.plot").forEach(readable);
document.querySelectorAll("section .legend").forEach(choosable);
// Not at the plots themselves: Chromium gives the focus to an SVG that listens to it.
document.addEventListener("focusin", (event) => {
  const mark = event.target.closest("svg.plot .mark");
  if (mark && mark.matches(":focus-visible")) show(mark);
});
document.addEventListener("focusout", hide);
document.addEventListener("keydown", step);
document.addEventListener("scroll", hide, { passive: true, capture: true });
enlargeable([...document.querySelectorAll("figure")].filter((figure) => figure.querySelector("svg")));
