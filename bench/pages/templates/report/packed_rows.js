(() => {
  const { all, make } = report;
  const SIZE = 100;
  const unpacked = async (script) => {
    const bytes = Uint8Array.from(atob(script.textContent.trim()), (letter) => letter.charCodeAt(0));
    return JSON.parse(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text());
  };
  const text = (cell) => (Array.isArray(cell) ? cell[0] : cell);
  const line = (row, labels) => make("tr", {}, ...row.map((cell, place) => {
    if (place === 0) return make("th", { scope: "row" }, cell);
    if (place < labels) return make("td", {}, cell);
    const kind = text(cell) === "better" || text(cell) === "worse" ? text(cell) : "number";
    return make("td", { class: kind }, text(cell), ...(Array.isArray(cell) ? [" ", make("span", { class: "interval" }, cell[1])] : []));
  }));
  all(".packed-rows").forEach((script) => {
    const block = script.parentElement;
    const [filter, number, earlier, later] = [".row-filter", ".row-number", ".row-earlier", ".row-later"].map((name) => block.querySelector(name));
    const table = block.querySelector("table.packed");
    const body = table.tBodies[table.tBodies.length - 1];
    const titles = all(".group-title", body);
    const labels = Number(script.dataset.labels);
    let rows = null;
    let order = [];
    let chosen = [];
    let start = 0;
    const show = () => {
      body.replaceChildren(...titles, ...chosen.slice(start, start + SIZE).map((place) => line(rows[place], labels)));
      const end = Math.min(start + SIZE, chosen.length);
      number.textContent = chosen.length ? `${start + 1} to ${end} of ${chosen.length}` : "no row";
      earlier.disabled = start === 0;
      later.disabled = end >= chosen.length;
    };
    const choose = () => {
      const words = filter.value.trim().toLowerCase();
      chosen = words ? order.filter((place) => rows[place].slice(0, labels).join(" ").toLowerCase().includes(words)) : order;
      start = 0;
      show();
    };
    const ready = (action) => async () => {
      if (rows === null) {
        rows = await unpacked(script);
        order = chosen = rows.map((_, place) => place);
      }
      action();
    };
    filter.addEventListener("input", ready(choose));
    earlier.addEventListener("click", ready(() => { start = Math.max(0, start - SIZE); show(); }));
    later.addEventListener("click", ready(() => { if (start + SIZE < chosen.length) start += SIZE; show(); }));
    all("thead th", table).forEach((head, column) => head.firstElementChild.addEventListener("click", ready(() => {
      const sign = head.getAttribute("aria-sort") === "descending" ? -1 : 1;
      order = rows.map((_, place) => place).sort((a, b) => sign * sorting.compare(text(rows[a][column]), text(rows[b][column])) || a - b);
      choose();
    })));
  });
})();
