(async () => {
  const packed = document.getElementById("rows");
  const unpacked = async () => {
    if (packed.type === "application/json") return packed.textContent;
    const bytes = Uint8Array.from(atob(packed.textContent.trim()), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  };
  const rows = JSON.parse(await unpacked());
  const heads = [...document.querySelectorAll("#index thead th")];
  const body = document.querySelector("#index tbody");
  const list = document.getElementById("list");
  const view = document.getElementById("view");
  const filter = document.getElementById("filter");
  const number = document.getElementById("number");
  const SIZE = 100;
  const RAISED = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079";
  const value = (text) => {
    const found = /^(?:at least )?(-?[\d,]*\.?\d+(?:e-?\d+)?)(?: \u00d7 10([\u2070\u00b9\u00b2\u00b3\u2074-\u2079]+))?(?:$|[-+ ])/.exec(text);
    if (!found) return -Infinity;
    const power = [...(found[2] ?? "")].map((digit) => RAISED.indexOf(digit)).join("");
    return Number(found[1].replaceAll(",", "")) * (power ? 10 ** Number(power) : 1);
  };
  let chosen = rows.map((_, place) => place);
  let start = 0;
  let current = null;
  const cell = (text, kind) => { const made = document.createElement("td"); made.textContent = text; if (kind) made.className = kind; return made; };
  const numeric = heads.map((_, column) => column !== 3 && rows.length > 0 && rows.every((row) => row[column + 1] === "-" || row[column + 1] === "" || value(row[column + 1]) > -Infinity));
  heads.forEach((head, column) => { if (numeric[column]) head.className = "number"; });
  const show = () => {
    body.replaceChildren(...chosen.slice(start, start + SIZE).map((place) => {
      const [page, id, ...cells] = rows[place];
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
      line.append(head, ...cells.map((text, column) => cell(text, numeric[column + 1] ? "number" : "")));
      return line;
    }));
    const end = Math.min(start + SIZE, chosen.length);
    number.textContent = chosen.length ? `${start + 1} to ${end} of ${chosen.length}` : "no item";
    document.getElementById("earlier").disabled = start === 0;
    document.getElementById("later").disabled = end >= chosen.length;
  };
  const move = (step) => { start = Math.max(0, Math.min(start + step * SIZE, Math.max(0, chosen.length - 1))); show(); };
  document.getElementById("earlier").addEventListener("click", () => move(-1));
  document.getElementById("later").addEventListener("click", () => move(1));
  let order = rows.map((_, place) => place);
  const choose = () => {
    const words = filter.value.trim().toLowerCase();
    chosen = words ? order.filter((place) => rows[place].slice(1).join(" ").toLowerCase().includes(words)) : order;
    start = 0;
    show();
  };
  filter.addEventListener("input", choose);
  heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const sign = down ? -1 : 1;
    const key = rows.map((row) => numeric[column] ? value(row[column + 1]) : row[column + 1]);
    const texts = new Intl.Collator("en", { numeric: true });
    const compare = numeric[column] ? (a, b) => (key[a] === key[b] ? 0 : key[a] < key[b] ? -1 : 1) : (a, b) => texts.compare(key[a], key[b]);
    order = rows.map((_, place) => place).sort((a, b) => sign * compare(a, b) || a - b);
    choose();
  }));
  const open = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    const place = rows.findIndex((row) => row[1] === id && row[0] !== null);
    const before = current;
    current = place < 0 ? null : place;
    list.hidden = current !== null;
    view.hidden = current === null;
    if (current === null) {
      view.replaceChildren();
      if (before !== null) [...body.querySelectorAll("a")].find((link) => link.textContent === rows[before][1])?.focus();
      return;
    }
    const back = document.createElement("p");
    const link = document.createElement("a");
    link.href = "#";
    link.textContent = "\u2190 all items";
    back.append(link);
    view.replaceChildren(back, document.getElementById(`page-${rows[place][0]}`).content.cloneNode(true));
    view.focus();
    scrollTo(0, 0);
  };
  const step = (by) => {
    if (current === null) return;
    for (let place = current + by; place >= 0 && place < rows.length; place += by) {
      if (rows[place][0] !== null) { location.hash = encodeURIComponent(rows[place][1]); return; }
    }
  };
  addEventListener("hashchange", open);
  list.addEventListener("click", (event) => {
    const point = event.target instanceof Element ? event.target.closest("[data-item]") : null;
    if (point) location.hash = encodeURIComponent(point.dataset.item);
  });
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
