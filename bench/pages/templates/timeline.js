"use strict";
(() => {
  const numbers = (text) => (text ? text.split(" ").map(Number) : []);
  const shares = (text) => new Map(text ? text.split(" ").map((one) => one.split(":").map(Number)) : []);
  const timelines = [...document.querySelectorAll(".timeline")].map((root) => {
    const find = (selector) => root.querySelector(selector);
    const rows = [...root.querySelectorAll(".words tbody tr")];
    const left = rows.map((row) => shares(row.dataset.shares));
    const things = [...root.querySelectorAll(".thing")];
    const chips = [...root.querySelectorAll("[data-answer]")];
    const [bench, film, slider, play] = [find(".bench"), find(".film"), find("input[type=range]"), find(".play")];
    const { token, width } = bench.dataset;
    const column = Number(film.dataset.column);
    let [here, timer] = [0, 0];

    const scene = (row) => {
      const [inPlace, touched, marked] = ["things", "touched", "marked"].map((name) => numbers(row.dataset[name]));
      things.forEach((thing, number) => {
        const place = inPlace.indexOf(number);
        const x = place < 0 ? Number(thing.dataset.home) : width / 2 + token * (place - (inPlace.length - 1) / 2);
        thing.style.transform = `translate(${x}px, ${place < 0 ? 200 : 70}px)`;
        thing.classList.toggle("in", place >= 0);
        thing.classList.toggle("touched", touched.includes(number));
        thing.classList.toggle("marked", marked.includes(number));
      });
      bench.dataset.light = row.dataset.light;
      find(".said").textContent = row.cells[2].textContent;
      find(".caption").textContent = row.cells[0].textContent;
      find(".behind").textContent = row.dataset.behind && `Hidden: the rule of the next reading is ${row.dataset.behind}`;
    };

    const space = (row) => {
      const [now, before] = [left[here], here ? left[here - 1] : left[0]];
      const most = Math.max(...now.values(), 0);
      find(".members").textContent = row.cells[3].textContent;
      find(".unit").textContent = row.cells[3].textContent === "1" ? "hypothesis left" : "hypotheses left";
      find(".news").textContent = find(".news").dataset.news = row.cells[5].textContent;
      find(".remark").textContent = row.cells[6].textContent;
      for (const chip of chips) {
        const number = Number(chip.dataset.answer);
        const share = now.get(number);
        const weight = share === undefined ? 0 : share / most;
        chip.className = share === undefined ? (before.has(number) ? "now" : "gone") : "still";
        chip.classList.toggle("decided", "last" in row.dataset);
        chip.style.background = share === undefined ? "" : `color-mix(in srgb, var(--good) ${Math.round(5 + 35 * weight)}%, var(--paper))`;
        chip.style.color = share === undefined ? "" : "var(--ink)";
        chip.title = share === undefined ? "ruled out" : `possible: ${(100 * share).toPrecision(3)} %`;
      }
    };

    const go = (wanted) => {
      here = Math.max(0, Math.min(rows.length - 1, wanted));
      const row = rows[here];
      rows.forEach((one) => one.classList.toggle("here", one === row));
      slider.value = here;
      slider.setAttribute("aria-valuetext", row.cells[0].textContent);
      film.querySelector(".cursor").setAttribute("x", Number(film.dataset.labels) + column * here);
      scene(row);
      space(row);
      find(".back").disabled = here === 0;
      find(".on-one").disabled = here === rows.length - 1;
    };
    const halt = () => {
      clearInterval(timer);
      timer = 0;
      play.textContent = "\u25b6 play";
    };
    const run = () => {
      if (timer) return halt();
      if (here === rows.length - 1) go(0);
      play.textContent = "\u23f8 pause";
      timer = setInterval(() => (here < rows.length - 1 ? go(here + 1) : halt()), 900);
    };
    const step = (wanted) => {
      halt();
      go(wanted);
    };
    slider.addEventListener("input", () => step(Number(slider.value)));
    find(".back").addEventListener("click", () => step(here - 1));
    find(".on-one").addEventListener("click", () => step(here + 1));
    play.addEventListener("click", run);
    find(".reveal").addEventListener("change", (event) => {
      root.classList.toggle("revealed", event.target.checked);
      find(".behind").hidden = !event.target.checked;
    });
    film.addEventListener("click", (event) => {
      const box = film.getBoundingClientRect();
      const x = ((event.clientX - box.left) * film.viewBox.baseVal.width) / box.width;
      step(Math.floor((x - Number(film.dataset.labels)) / column));
    });
    go(0);
    return { root, keys: { ArrowLeft: () => step(here - 1), ArrowRight: () => step(here + 1), Home: () => step(0), End: () => step(rows.length - 1) } };
  });
  // Keys are of the timeline that was touched last; on a page of timelines alone, of the first until then.
  const first = "keys" in document.body.dataset ? timelines[0] : undefined;
  let active = first;
  for (const name of ["pointerdown", "focusin"]) {
    document.addEventListener(name, (event) => {
      active = timelines.find((one) => one.root.contains(event.target)) || first;
    });
  }
  document.addEventListener("keydown", (event) => {
    const act = active && active.keys[event.key];
    const typing = event.target.closest && event.target.closest("input[type=search], input[type=text], textarea");
    if (!act || typing || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    act();
  });
})();
