// Tables whose headings are buttons: rows are sorted within their group, what is no number or no rate last.
const sorting = (() => {
  const number = (text) => {
    const share = /^\s*([\d.,]+)\s*\/\s*([\d.,]+)/.exec(text);  // 7/8, of which counts differ
    if (share) return parseFloat(share[1].replace(/,/g, "")) / parseFloat(share[2].replace(/,/g, ""));
    const plain = /^\s*[-+]?\.?\d[\d.,]*(?:e[-+]?\d+)?(?![\w.-])/i.exec(text);  // no digest, no date
    return plain ? parseFloat(plain[0].replace(/,/g, "")) : null;
  };
  const compare = (first, second) => {
    const [x, y] = [number(first), number(second)];
    return x !== null && y !== null ? x - y : x !== null ? -1 : y !== null ? 1 : first.localeCompare(second);
  };
  const isRate = (text) => number(text) !== null;
  document.querySelectorAll(".sortable").forEach((table) => table.querySelectorAll("thead th > button").forEach((button) => button.addEventListener("click", () => {
    const head = button.closest("th");
    const column = head.cellIndex;
    const down = head.getAttribute("aria-sort") === "ascending";
    table.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const isNumeric = head.classList.contains("number");
    [...table.tBodies].forEach((body) => {
      if (table.classList.contains("packed") && body === table.tBodies[table.tBodies.length - 1]) return;
      const rows = [...body.rows].filter((row) => !row.classList.contains("group-title"));
      const keys = new Map(rows.map((row) => [row, row.cells[column].textContent.trim()]));
      rows.sort((a, b) => {
        const [x, y] = [keys.get(a), keys.get(b)];
        const order = compare(x, y);
        return isNumeric && isRate(x) !== isRate(y) ? order : down ? -order : order;
      });
      body.append(...rows);
    });
  })));
  return { compare };
})();

// Sections of a report or board can be linked: a mark behind the title of each.
document.querySelectorAll("main h2[id], main section[id] > h2:first-child, main section[id] > h3:first-child").forEach((title) => {
  const link = document.createElement("a");
  link.href = `#${title.id || title.parentElement.id}`;
  link.className = "anchor";
  link.setAttribute("aria-label", `Link to: ${title.textContent.trim()}`);
  title.append(link);
});
