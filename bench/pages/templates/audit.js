"use strict";
(() => {
  const table = document.getElementById("instances");
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const key = (row, column) => {
    const cell = row.cells[column];
    if (!cell) return "";
    return cell.dataset.sort === undefined ? cell.textContent : Number(cell.dataset.sort);
  };
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...body.rows].sort((a, b) => compare(key(a, column), key(b, column)) * (down ? -1 : 1));
    body.append(...rows);
  }));
  const filter = document.getElementById("filter");
  const shown = document.getElementById("shown");
  filter.addEventListener("input", () => {
    const wanted = filter.value.trim().toLowerCase();
    let number = 0;
    for (const row of body.rows) {
      row.hidden = !row.textContent.toLowerCase().includes(wanted);
      number += row.hidden ? 0 : 1;
    }
    shown.textContent = wanted ? `${number} of ${body.rows.length}` : "";
  });
  const all = (open) => document.querySelectorAll("details.instance").forEach((section) => { section.open = open; });
  document.getElementById("open").addEventListener("click", () => all(true));
  document.getElementById("close").addEventListener("click", () => all(false));
  const unfold = () => {
    const section = document.getElementById(location.hash.slice(1));
    if (section instanceof HTMLDetailsElement) { section.open = true; section.scrollIntoView(); }
  };
  window.addEventListener("hashchange", unfold);
  unfold();
})();
