// Sorts and filters tables; the URL's fragment keeps the state. Pages also work without this script.
"use strict";

const state = new URLSearchParams(location.hash.startsWith("#!") ? location.hash.slice(2) : "");

function remember(key, value) {
  if (value) state.set(key, value); else state.delete(key);
  const text = state.toString();
  history.replaceState(null, "", text ? `#!${text}` : location.href.split("#")[0]);
}

function value(cell) {
  if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
  const text = cell.textContent.trim();
  const number = Number(text.replace(/[,%\s]/g, ""));
  return text && !Number.isNaN(number) ? number : text.toLowerCase();
}

function compare(a, b) {
  if (a === b) return 0;
  if (a === "") return 1;
  if (b === "") return -1;
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return a < b ? -1 : 1;
}

function sort(table, column, direction) {
  const rows = table.original.slice();
  if (direction) {
    rows.sort((one, other) => direction * compare(value(one.cells[column]), value(other.cells[column])));
  }
  table.tBodies[0].append(...rows);
  [...table.tHead.rows[0].cells].forEach((head, index) => {
    if (index === column && direction) head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
    else head.removeAttribute("aria-sort");
  });
}

function sortable(table) {
  const key = `${table.id}.sort`;
  let current = 0;
  const apply = (number) => { current = number; sort(table, Math.abs(number) - 1, Math.sign(number)); };
  [...table.tHead.rows[0].cells].forEach((head, index) => {
    if (!head.textContent.trim() || head.textContent === "interval") return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const number = index + 1;
      apply(current === number ? -number : current === -number ? 0 : number);
      remember(key, current ? String(current) : "");
    });
  });
  const stored = parseInt(state.get(key) || "", 10);
  if (stored && Math.abs(stored) <= table.tHead.rows[0].cells.length) apply(stored);
}

// An input that leaves only the rows of these tables that contain what was typed.
function filterable(tables, key, words, put) {
  const tools = document.createElement("div");
  tools.className = "tools";
  const label = document.createElement("label");
  const input = document.createElement("input");
  const count = document.createElement("span");
  const rows = tables.flatMap((table) => table.original);
  input.type = "search";
  count.setAttribute("role", "status");
  label.append(words, input);
  tools.append(label, count);
  put(tools);
  const apply = () => {
    const wanted = input.value.trim().toLowerCase();
    for (const row of rows) row.hidden = wanted !== "" && !row.textContent.toLowerCase().includes(wanted);
    count.textContent = wanted ? `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows` : "";
  };
  input.addEventListener("input", () => { apply(); remember(key, input.value.trim()); });
  input.value = state.get(key) || "";
  apply();
}

for (const table of document.querySelectorAll("table:is(.sortable, .searched)")) table.original = [...table.tBodies[0].rows];
for (const table of document.querySelectorAll("table.sortable")) {
  sortable(table);
  if (table.classList.contains("filterable") && table.original.length > 1) {
    filterable([table], `${table.id}.filter`, "Only rows with ", (tools) => table.closest(".scroll").before(tools));
  }
}
const searched = [...document.querySelectorAll("table.searched")];
const search = document.getElementById("search");
if (search && searched.length) filterable(searched, "search", "Search problems, devices and authors ", (tools) => search.append(tools));
