(() => {
  const rows = JSON.parse(document.getElementById("rows").textContent);
  const body = document.querySelector("#index tbody");
  const list = document.getElementById("list");
  const view = document.getElementById("view");
  const filter = document.getElementById("filter");
  const SIZE = 100;
  let chosen = rows.map((_, place) => place);
  let start = 0;
  let current = null;
  const cell = (text, kind) => { const made = document.createElement("td"); made.textContent = text; if (kind) made.className = kind; return made; };
  const show = () => {
    body.replaceChildren(...chosen.slice(start, start + SIZE).map((place) => {
      const [id, state, count, reason, page] = rows[place];
      const line = document.createElement("tr");
      const head = document.createElement("th");
      head.scope = "row";
      if (page === null) head.textContent = id;
      else {
        const link = document.createElement("a");
        link.href = `#${encodeURIComponent(id)}`;
        link.textContent = id;
        head.append(link);
      }
      line.append(head, cell(state), cell(count, "number"), cell(reason));
      return line;
    }));
    const end = Math.min(start + SIZE, chosen.length);
    document.getElementById("number").textContent = chosen.length ? `${start + 1} to ${end} of ${chosen.length}` : "no item";
    document.getElementById("earlier").disabled = start === 0;
    document.getElementById("later").disabled = end >= chosen.length;
  };
  const move = (step) => { start = Math.max(0, Math.min(start + step * SIZE, Math.max(0, chosen.length - 1))); show(); };
  document.getElementById("earlier").addEventListener("click", () => move(-1));
  document.getElementById("later").addEventListener("click", () => move(1));
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase();
    chosen = rows.flatMap((row, place) => row.slice(0, 4).join(" ").toLowerCase().includes(words) ? [place] : []);
    start = 0;
    show();
  });
  const open = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    const place = rows.findIndex((row) => row[0] === id && row[4] !== null);
    const before = current;
    current = place < 0 ? null : place;
    list.hidden = current !== null;
    view.hidden = current === null;
    if (current === null) {
      view.replaceChildren();
      if (before !== null) [...body.querySelectorAll("a")].find((link) => link.textContent === rows[before][0])?.focus();
      return;
    }
    const back = document.createElement("p");
    const link = document.createElement("a");
    link.href = "#";
    link.textContent = "\u2190 all items";
    back.append(link);
    view.replaceChildren(back, document.getElementById(`page-${rows[place][4]}`).content.cloneNode(true));
    view.focus();
    scrollTo(0, 0);
  };
  const step = (by) => {
    if (current === null) return;
    for (let place = current + by; place >= 0 && place < rows.length; place += by) {
      if (rows[place][4] !== null) { location.hash = encodeURIComponent(rows[place][0]); return; }
    }
  };
  addEventListener("hashchange", open);
  addEventListener("keydown", (event) => {
    if (event.target instanceof HTMLInputElement || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") { event.preventDefault(); filter.focus(); }
    else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "Escape" && current !== null && document.getElementById("keys").hidden) location.hash = "";
  });
  show();
  open();
})();
