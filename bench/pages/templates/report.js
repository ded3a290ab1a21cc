"use strict";
(() => {
  const tables = [...document.querySelectorAll("table.figures")];
  const key = (row, column) => {
    const text = row.cells[column].firstChild ? row.cells[column].firstChild.textContent.trim() : "";
    return text !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    return a.localeCompare(b, "en", { numeric: true });
  };
  for (const table of tables) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...[...body.rows].sort((a, b) => compare(key(a, column), key(b, column)) * (down ? -1 : 1)));
    }));
  }
  const filter = document.getElementById("filter");
  const paper = document.getElementById("paper");
  const apply = () => {
    const wanted = filter.value.trim().toLowerCase();
    for (const table of tables) {
      for (const row of table.tBodies[0].rows) {
        const printed = row.classList.contains("paper");
        row.hidden = (printed && !paper.checked) || !row.textContent.toLowerCase().includes(wanted);
      }
    }
  };
  filter.addEventListener("input", apply);
  paper.addEventListener("change", apply);
})();
