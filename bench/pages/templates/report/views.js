"use strict";
const report = (() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    Object.entries(attributes).forEach(([key, value]) => { if (value !== null) element.setAttribute(key, value); });
    element.append(...children);
    return element;
  };
  const packs = new Map();
  const read = (id) => {
    if (!packs.has(id)) packs.set(id, JSON.parse(document.getElementById(id).textContent));
    return packs.get(id);
  };
  const names = all('script[id^="pack-"]').map((script) => script.id.slice(5));
  const address = (...parts) => `#${parts.map((part) => encodeURIComponent(part).replace(/^~/, "%7E")).join("/")}`;

  // tabs: one benchmark at a time; all of them without a script and in print
  const sections = all(".section");
  const tabs = all("[role=tab]");
  const show = (name) => {
    sections.forEach((part) => { part.hidden = part.dataset.benchmark !== name; });
    all(".toc").forEach((part) => { part.hidden = part.dataset.benchmark !== name; });
    tabs.forEach((tab) => {
      const here = tab.getAttribute("aria-controls") === name;
      tab.setAttribute("aria-selected", String(here));
      tab.tabIndex = here ? 0 : -1;
    });
  };
  tabs.forEach((tab, place) => tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = tabs[(place + step + tabs.length) % tabs.length];
    next.focus();
    location.hash = next.getAttribute("href");
  }));

  // contents sheet where the page is narrow
  const side = document.getElementById("side");
  const sheet = document.getElementById("contents");
  const openSheet = (wanted) => {
    side.classList.toggle("open", wanted);
    sheet.setAttribute("aria-expanded", String(wanted));
    if (wanted) side.querySelector(".toc:not([hidden]) a")?.focus();
  };
  sheet.addEventListener("click", () => openSheet(!side.classList.contains("open")));
  side.addEventListener("click", (event) => { if (event.target.closest("a")) openSheet(false); });

  // many systems: 20 in view, those that are pinned, or a search
  const IN_VIEW = 20;
  all(".controls").forEach((controls) => {
    const section = document.getElementById(controls.dataset.controls);
    const rows = all(".systems tbody tr", section);
    const pinned = new Set();
    const [search, family, everything] = [".system-search", ".system-family", ".system-all"].map((name) => controls.querySelector(name));
    const update = () => {
      const text = search.value.trim().toLowerCase();
      const matching = rows.filter((row) => (!text || row.dataset.system.toLowerCase().includes(text)) && (!family.value || row.dataset.family === family.value));
      const whole = everything.getAttribute("aria-pressed") === "true";
      const visible = new Set((whole ? matching : matching.slice(0, IN_VIEW)).map((row) => row.dataset.system));
      pinned.forEach((name) => visible.add(name));
      all("[data-system]", section).forEach((row) => { row.hidden = !visible.has(row.dataset.system); });
      controls.querySelector(".view-note").textContent = `${visible.size} of ${rows.length} systems in view`;
    };
    search.addEventListener("input", update);
    family.addEventListener("change", update);
    everything.addEventListener("click", () => {
      everything.setAttribute("aria-pressed", String(everything.getAttribute("aria-pressed") !== "true"));
      update();
    });
    all(".pin", section).forEach((pin) => pin.addEventListener("click", () => {
      const name = pin.closest("tr").dataset.system;
      const on = !pinned.has(name);
      if (on) pinned.add(name); else pinned.delete(name);
      pin.setAttribute("aria-pressed", String(on));
      pin.textContent = on ? "★" : "☆";
      update();
    }));
    update();
  });

  // CSV of the counts behind the first screen
  const csv = () => {
    const lines = [["benchmark", "condition", "system", "answers", "earned", "lucky", "right", "wrong", "short", "missed", "invalid", "no_answer"]];
    names.forEach((name) => {
      const pack = read(`pack-${name}`);
      pack.cells.forEach(([system, condition, ...counts]) => lines.push([name, pack.conditions[condition], pack.systems[system].name, ...counts]));
    });
    const quoted = (cell) => { const text = String(cell).replace(/^[=+\-@\t\r]/, "'$&"); return /[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text; };
    return lines.map((line) => line.map(quoted).join(",")).join("\n") + "\n";
  };
  document.getElementById("csv").addEventListener("click", () => {
    make("a", { href: `data:text/csv;charset=utf-8,${encodeURIComponent(csv())}`, download: "report.csv" }).click();
  });

  // find a system or an item
  const MAX_HITS = 40;
  const finder = document.getElementById("finder");
  const finderText = document.getElementById("finder-text");
  const findButton = document.getElementById("find");
  const openFinder = (wanted) => {
    finder.hidden = !wanted;
    findButton.setAttribute("aria-expanded", String(wanted));
    if (wanted) { finderText.focus(); finderText.select(); } else findButton.focus();
  };
  findButton.addEventListener("click", () => openFinder(finder.hidden));
  finderText.addEventListener("input", () => {
    const text = finderText.value.trim().toLowerCase();
    const hits = [];
    if (text) names.forEach((name) => {
      const pack = read(`pack-${name}`);
      pack.systems.forEach((system) => { if (system.name.toLowerCase().includes(text)) hits.push([address(name, "~system", system.name), `${system.name} · ${pack.title}`]); });
      pack.ids.forEach((id, place) => { if (id.toLowerCase().includes(text)) hits.push([address(name, "~item", `${place}`).replace("%7E", "~"), `${id} · ${pack.title}`]); });
    });
    document.getElementById("finder-hits").replaceChildren(...hits.slice(0, MAX_HITS).map(([href, label]) => make("li", {}, make("a", { href: href.replace("%7E", "~") }, label))));
    document.getElementById("finder-note").textContent = text ? (hits.length > MAX_HITS ? `${MAX_HITS} of ${hits.length}` : `${hits.length} found`) : "";
  });
  finder.addEventListener("click", (event) => { if (event.target.closest("a")) openFinder(false); });
  addEventListener("keydown", (event) => {
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) { event.preventDefault(); openFinder(true); }
    if (event.key === "Escape" && !finder.hidden) { event.stopImmediatePropagation(); openFinder(false); }
    if (event.key === "Escape" && side.classList.contains("open")) { openSheet(false); sheet.focus(); }
  });
  return { all, make, read, names, address, show, sections, csv };
})();
