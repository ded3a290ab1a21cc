(() => {
  const { all, make, read, names, show, sections } = report;
  const overview = document.getElementById("overview");
  const drill = document.getElementById("drill");
  const side = document.getElementById("side");
  const GLYPHS = { earned: "✓", lucky: "≈", right: "✓", wrong: "✗", short: "○", missed: "✗", invalid: "–", none: "–" };
  const PAGE = 200;
  let filter = "";
  let shown = PAGE;
  let origin = null;

  const segment = (text) => encodeURIComponent(text).replace(/^~/, "%7E");
  const link = (...parts) => `#${parts.join("/")}`;

  // answers of one system under one condition, or of all systems to one item
  const row = (pack, system, at) => {
    const of = pack.systems[system];
    const kind = pack.letters[of.k[at]];
    return {
      system, at, item: of.i[at], kind, cost: of.c[at], left: pack.left[of.l[at]] ?? "",
      sample: of.s ? of.s[at] : 0, person: of.p ? of.p[at] : "", file: of.f && of.f[at] >= 0 ? pack.files[of.f[at]] : "", line: of.n ? of.n[at] : 0,
    };
  };
  const detailOf = (pack, answer) => {
    const entry = pack.systems[answer.system].d.find(([at]) => at === answer.at);
    return entry ? read(`details-${pack.name}`)[entry[1]] : null;
  };
  const label = (pack, answer) => pack.ids[answer.item] + (answer.person ? `, ${answer.person}` : pack.systems[answer.system].s ? ` (sample ${answer.sample})` : "");
  const systemName = (pack, answer) => (answer.person ? `human:${answer.person}` : pack.systems[answer.system].name);
  const itemSegment = (pack, answer) => {
    const id = pack.ids[answer.item];
    const twice = pack.pool && pack.ids.indexOf(id) !== pack.ids.lastIndexOf(id);
    return segment(id) + (twice ? `@${pack.pool[answer.item]}` : "") + (answer.person ? `@${answer.person}` : pack.systems[answer.system].s ? `@s${answer.sample}` : "");
  };
  const answerLink = (pack, answer) =>
    link(segment(pack.name), segment(pack.conditions[pack.of[answer.item]]), segment(pack.systems[answer.system].name), itemSegment(pack, answer));

  const cellAnswers = (pack, condition, system) => {
    const of = pack.systems[system];
    const answers = [];
    for (let at = 0; at < of.i.length; at++) if (condition < 0 || pack.of[of.i[at]] === condition) answers.push(row(pack, system, at));
    return answers;
  };
  const itemAnswers = (pack, item) => pack.systems.flatMap((of, system) => of.i.map((one, at) => (one === item ? row(pack, system, at) : null)).filter(Boolean));

  const chip = (tone, text) => make("li", { class: tone }, text);
  const classMark = (answer) => make("span", { class: `class ${answer.kind}` }, `${GLYPHS[answer.kind]} ${answer.kind === "none" ? "no answer" : answer.kind}`);

  const listTable = (pack, answers, current, bySystem) => {
    const heads = [bySystem ? "System" : "Item", "Class", ...(pack.cost ? [pack.cost[0].toUpperCase() + pack.cost.slice(1)] : []), "Left"];
    const body = answers.slice(0, shown).map((answer) => {
      const detail = pack.systems[answer.system].d.some(([at]) => at === answer.at);
      const name = bySystem ? systemName(pack, answer) : label(pack, answer);
      const cells = [
        make("th", { scope: "row" }, make("a", { href: answerLink(pack, answer), ...(current && current.at === answer.at && current.system === answer.system ? { "aria-current": "true" } : {}) }, name)),
        make("td", {}, classMark(answer)),
        ...(pack.cost ? [make("td", { class: "number" }, answer.cost === null ? "–" : String(answer.cost))] : []),
        make("td", { class: "number" }, answer.left || "–"),
      ];
      const line = make("tr", {}, ...cells);
      if (current && current.at === answer.at && current.system === answer.system) line.className = "look";
      if (!detail && answer.line) cells[0].append(make("span", { class: "soft" }, ` ${answer.file}:${answer.line}`));
      return line;
    });
    const table = make("table", { class: "answers-list" },
      make("thead", {}, make("tr", {}, ...heads.map((text, place) => make("th", { scope: "col", ...(place > 1 ? { class: "number" } : {}) }, text)))),
      make("tbody", {}, ...body));
    const parts = [make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Answers" }, table), make("p", { class: "note" }, `Left: ${pack.hypotheses} of the counted class that fit the evidence.`)];
    if (answers.length > shown) {
      const more = make("button", { type: "button" }, `${Math.min(PAGE, answers.length - shown)} more of ${answers.length - shown}`);
      more.addEventListener("click", () => { shown += PAGE; route(); });
      parts.push(more);
    }
    if (!pack.whole) parts.push(make("p", { class: "note" }, "Too many answers for a page: those with their response are listed."));
    return parts;
  };

  const filters = (answers, update) => {
    const count = (test) => answers.filter(test).length;
    const entries = [["right", (a) => ["earned", "lucky", "right"].includes(a.kind)], ...["earned", "lucky", "short", "missed"].map((kind) => [kind, (a) => a.kind === kind]), ["uncounted", (a) => ["right", "wrong"].includes(a.kind)], ["invalid", (a) => a.kind === "invalid"], ["no answer", (a) => a.kind === "none"]];
    const box = make("div", { class: "filters", role: "group", "aria-label": "Classes" });
    entries.forEach(([name, test]) => {
      const number = count(test);
      if (["uncounted", "invalid", "no answer"].includes(name) && !number) return;
      const button = make("button", { type: "button", "aria-pressed": String(filter === name) }, `${name} ${number}`);
      button.addEventListener("click", () => { filter = filter === name ? "" : name; update(); });
      box.append(button);
    });
    const chosen = entries.find(([name]) => name === filter);
    return [box, chosen ? answers.filter(chosen[1]) : answers];
  };

  // words of the response that gold has not, and the other way round
  const marked = (text, other, tag) => {
    const has = new Set(other.split(/(\s+|[{}[\](),:=])/));
    return text.split(/(\s+|[{}[\](),:=])/).map((word) => (word.trim() && /\w/.test(word) && !has.has(word) ? make(tag, {}, word) : word));
  };

  // lines of a mechanism that differs; a right answer has no marks, and one in another form than gold none either
  const compared = (detail, text, other, tag, right) => {
    if (right || !text || !other) return [text];
    if (!detail.differs) return marked(text, other, tag);
    const differs = new Set(detail.differs);
    return text.split(/(?<=\n)/).map((line) => (differs.has(line.split(" = ")[0]) ? make(tag, {}, line) : line));
  };

  const command = (id, text) => {
    const done = make("span", { class: "soft", id: `${id}-copied`, role: "status" });
    return make("div", { class: "command fix" }, make("pre", { id }, text), make("button", { type: "button", "data-copy": id }, "Copy"), " ", done);
  };

  const responseView = (pack, answer) => {
    const detail = detailOf(pack, answer);
    const title = detail?.title ?? pack.titles[answer.kind];
    const box = make("article", { class: "response" }, make("h1", { tabindex: "-1" }, title));
    if (!detail) {
      const where = answer.line ? `line ${answer.line} of ${answer.file}` : "the input";
      box.append(make("p", { class: "reason" }, `This response is not in the page; it is in ${where}.`), make("p", {}, classMark(answer)));
    } else {
      box.append(make("p", { class: "reason" }, detail.sentences.join(" ")));
      const right = ["earned", "lucky", "right"].includes(answer.kind);
      const chips = make("ul", { class: "chips" }, chip(right ? "good" : "bad", right ? "✓ correct" : "✗ wrong"));
      if (["earned", "missed", "lucky", "short"].includes(answer.kind)) chips.append(["earned", "missed"].includes(answer.kind) ? chip("good", "✓ decided") : chip("warn", "≈ undecided"));
      (detail.chips ?? []).slice(0, 4).forEach(([tone, text]) => chips.append(chip(tone, text)));
      const panel = (heading, content, note) => make("section", { class: "panel", "aria-label": heading }, make("h2", {}, heading), content, make("p", { class: "note" }, note ?? ""));
      const gold = detail.gold ?? "";
      box.append(make("div", { class: "three" },
        panel("Response", detail.response ? make("pre", { tabindex: "0" }, ...compared(detail, detail.response, gold, "ins", right)) : make("p", { class: "soft" }, detail.response_note ?? ""), detail.response ? detail.response_note : ""),
        panel("Gold", gold ? make("pre", { tabindex: "0" }, ...compared(detail, gold, detail.response, "del", right)) : make("p", { class: "soft" }, "Not in the inputs: give the pool with --pool."), detail.gold_note),
        panel("Verdict", chips, detail.verdict_note)));
      if (detail.remaining) box.append(remainingPanel(...detail.remaining));
      if (detail.moves) box.append(movesPanel(detail));
    }
    box.append(buttons(pack, answer, detail));
    return box;
  };
  const remainingPanel = (number, lines, note) => {
    const heading = `Still open at this answer: ${number}`;
    return make("section", { class: "panel", "aria-label": heading }, make("h2", {}, heading), make("ul", {}, ...lines.map((text) => make("li", {}, text))), make("p", { class: "note" }, note));
  };
  const movesPanel = (detail) => {
    const head = make("tr", {}, ...detail.headings.map((text) => make("th", { scope: "col" }, text)));
    const rows = detail.moves.map(([cells, look]) => make("tr", look ? { class: "look" } : {}, ...cells.map((text) => make("td", {}, text))));
    const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
    const title = detail.moves_title ?? "Its last moves";
    return make("section", { class: "panel", "aria-label": title }, make("h2", {}, title), make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": title }, table));
  };
  const buttons = (pack, answer, detail) => {
    const bar = make("div", { class: "buttons" });
    const place = make("div", {});
    const id = pack.ids[answer.item];
    const shell = (text) => (/^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
    const fill = (text) => text.replaceAll("{id}", () => shell(id)).replaceAll("{system}", () => shell(systemName(pack, answer)));
    const show = (label, text, primary) => {
      const button = make("button", { type: "button", ...(primary ? { class: "primary" } : {}), "aria-expanded": "false" }, label);
      button.addEventListener("click", () => {
        const open = button.getAttribute("aria-expanded") !== "true";
        all("button[aria-expanded]", bar).forEach((other) => other.setAttribute("aria-expanded", "false"));
        button.setAttribute("aria-expanded", String(open));
        place.replaceChildren(...(open ? [command("command-text", text)] : []));
      });
      bar.append(button);
    };
    const episode = document.querySelector(`.timeline[aria-label="${CSS.escape(`${systemName(pack, answer)} on ${id}`)}"]`);
    if (episode) bar.append(make("a", { href: `#${episode.id}`, class: "button" }, "Step through the episode"));
    else if (pack.commands.episode) show("Step through the episode", fill(pack.commands.episode), true);
    if (pack.commands.gold) show("Compare with gold", fill(pack.commands.gold), true);
    if (pack.commands.why) show("What would have decided it", fill(pack.commands.why));
    const others = itemAnswers(pack, answer.item).length;
    bar.append(make("a", { class: "button", href: link(segment(pack.name), "~item", String(answer.item)) }, `Same item, other systems (${others})`));
    if (detail?.line) show("Copy as prediction line", detail.line);
    return make("div", {}, bar, place);
  };

  const trail = (pack, parts, position, previous, next, back) => {
    const nav = make("nav", { class: "trail", "aria-label": "Position" });
    parts.forEach(([text, href], place) => nav.append(...(place ? [make("span", { "aria-hidden": "true" }, "›")] : []), href ? make("a", { href }, text) : make("b", { "aria-current": "page" }, text)));
    const end = make("span", { class: "end" });
    if (position) end.append(make("span", { class: "soft" }, position));
    const step = (id, key, arrow, href) => href && end.append(make("a", { id, href }, arrow === "←" ? "← " : "", make("kbd", {}, key), arrow === "→" ? " →" : ""));
    step("previous", "k", "←", previous);
    step("next", "j", "→", next);
    end.append(make("a", { id: "back", href: back }, "back ", make("kbd", {}, "Esc")));
    nav.append(end);
    return nav;
  };

  const open = (content) => {
    overview.hidden = true; side.hidden = true; drill.hidden = false;
    drill.replaceChildren(...content);
    const target = drill.querySelector("h1");
    if (!drill.contains(document.activeElement)) target?.focus({ preventScroll: true });
    drill.parentElement.classList.add("drilling");
    scrollTo(0, 0);
  };
  const close = () => {
    if (drill.hidden) return;
    drill.hidden = true; overview.hidden = false; side.hidden = false;
    drill.parentElement.classList.remove("drilling");
    drill.replaceChildren();
    if (origin) all("a", overview).find((one) => one.getAttribute("href") === origin && one.offsetParent)?.focus();
  };

  const listView = (pack, heading, answers, parts, current, bySystem, self, back) => {
    const [box, kept] = filters(answers, route);
    const place = current ? kept.findIndex((one) => one.at === current.at && one.system === current.system) : -1;
    const at = (offset) => (current && kept[place + offset] && place >= 0 ? answerLink(pack, kept[place + offset]) : current ? null : offset > 0 && kept[0] ? answerLink(pack, kept[0]) : null);
    const position = current && place >= 0 ? `${place + 1} of ${kept.length}` : `${kept.length}`;
    const level = current ? "h2" : "h1";
    const list = make("div", {}, make(level, current ? {} : { tabindex: "-1" }, heading), box, ...listTable(pack, kept, current, bySystem));
    const content = [trail(pack, parts, position, at(-1), at(1), current ? self : back)];
    content.push(current ? make("div", { class: "drill-columns" }, list, responseView(pack, current)) : list);
    open(content);
  };

  const plainItems = (pack, heading, places) => {
    const rows = places.slice(0, shown).map((item) => make("tr", {},
      make("th", { scope: "row" }, make("a", { href: link(segment(pack.name), "~item", String(item)) }, pack.ids[item])),
      make("td", {}, pack.conditions[pack.of[item]])));
    const table = make("table", { class: "answers-list" }, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Item"), make("th", { scope: "col" }, "Condition"))), make("tbody", {}, ...rows));
    const content = [trail(pack, [[pack.title, link(pack.name)], [heading, null]], String(places.length), null, null, link(pack.name)), make("h1", { tabindex: "-1" }, `${heading}: ${places.length} ${pack.items}`), make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": heading }, table)];
    if (places.length > shown) {
      const more = make("button", { type: "button" }, `${Math.min(PAGE, places.length - shown)} more of ${places.length - shown}`);
      more.addEventListener("click", () => { shown += PAGE; route(); });
      content.push(more);
    }
    open(content);
  };

  const special = (pack, verb, value) => {
    const lists = { "~undecided": ["Decided by no system", pack.lists.decided], "~unsolved": ["Right by no system", pack.lists.right], "~missed": ["Missed by all", pack.lists["all-missed"]], "~all": ["All items", pack.ids.map((_, place) => place)] };
    if (lists[verb]) { plainItems(pack, ...lists[verb]); return true; }
    if (verb === "~item" && pack.ids[Number(value)] !== undefined) {
      const item = Number(value);
      const answers = itemAnswers(pack, item);
      listView(pack, `${pack.ids[item]}: ${answers.length} answers`, answers, [[pack.title, link(pack.name)], [pack.ids[item], null]], null, true, "", link(pack.name));
      return true;
    }
    if (verb === "~system") {
      const system = pack.systems.findIndex((one) => one.name === value);
      if (system < 0) return false;
      const answers = cellAnswers(pack, -1, system);
      listView(pack, `${value}: ${answers.length} answers`, answers, [[pack.title, link(pack.name)], [value, null]], null, false, "", link(pack.name));
      return true;
    }
    return false;
  };

  const findAnswer = (pack, answers, text) => answers.find((answer) => itemSegment(pack, answer) === text) ?? answers.find((answer) => segment(pack.ids[answer.item]) === text);

  const routeTo = (raw) => {
    const parts = raw.split("/");
    const plain = parts.map((part) => { try { return decodeURIComponent(part); } catch { return part; } });
    if (!names.includes(plain[0]) || parts.length < 2) return false;
    const pack = read(`pack-${plain[0]}`);
    show(pack.name);
    if (parts[1].startsWith("~")) return special(pack, parts[1], plain[2]);
    const condition = pack.conditions.indexOf(plain[1]);
    const system = pack.systems.findIndex((one) => one.name === plain[2]);
    if (condition < 0 || system < 0) return false;
    const answers = cellAnswers(pack, condition, system);
    const current = parts.length > 3 ? findAnswer(pack, answers, parts.slice(3).join("/")) : null;
    if (parts.length > 3 && !current) return false;
    const self = link(segment(pack.name), segment(plain[1]), segment(plain[2]));
    const path = [[pack.title, link(pack.name)], [`${plain[1]}`, link(pack.name)], [plain[2], current ? self : null], ...(current ? [[label(pack, current), null]] : [])];
    listView(pack, `${plain[2]} on ${plain[1]}: ${answers.length} answer${answers.length === 1 ? "" : "s"}`, answers, path, current, false, self, link(pack.name));
    return true;
  };

  function route() {
    const raw = location.hash.slice(1);
    if (raw && routeTo(raw)) return;
    let id = raw;
    try { id = decodeURIComponent(raw); } catch { /* as it is */ }
    const target = id ? document.getElementById(id) : null;
    const section = target?.closest(".section") ?? sections[0];
    close();
    if (section) show(section.dataset.benchmark);
    if (target && target !== section) { for (let part = target.closest("details"); part; part = part.parentElement.closest("details")) part.open = true; target.scrollIntoView(); }
  }
  addEventListener("hashchange", () => { shown = PAGE; route(); });
  overview.addEventListener("click", (event) => { const one = event.target.closest("a"); if (one) { origin = one.getAttribute("href"); filter = ""; } });
  addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || drill.hidden || !document.getElementById("keys").hidden) return;
    location.hash = document.getElementById("back").getAttribute("href");
  });
  if (sections.length) route();
})();
