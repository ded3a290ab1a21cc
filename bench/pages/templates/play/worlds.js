views.worlds = {
  sorted: null,
  wrongFirst() { return this.sorted?.name === "wrong"; },
  tables(item) {
    const v = item.view, worlds = v.worlds.map((w) => ({ ...w }));
    for (const step of item.steps) if (step.reading) worlds.push({ id: `world ${step.reading.world}`, units: step.reading.rows.map((_, k) => `row ${k + 1}`), rows: step.reading.rows, set: Object.keys(step.action.do || {}) });
    return worlds;
  },
  render(item) {
    const v = item.view, frozen = isFrozen(), wrong = {};
    for (const [name, judged] of Object.entries(item.cells || {})) for (const [w, r] of judged.wrong) wrong[`${w}.${r}.${name}`] = true;
    const rows = [], cellsKnown = item.cells && Object.keys(item.cells).length > 0;
    if (cellsKnown && !this.chose && matchMedia("(max-width: 420px)").matches) this.sorted = { name: "wrong", sign: 1 };
    this.tables(item).forEach((world, w) => world.rows.forEach((bits, r) => rows.push({ world: world.id, unit: world.units[r], bits, set: world.set, w, r, bad: v.variables.some((name) => wrong[`${w}.${r}.${name}`]) })));
    if (this.sorted) {
      const k = v.variables.indexOf(this.sorted.name), value = (row) => k < 0 ? (row.bad ? 0 : 1) : Number(row.bits[k]);
      rows.sort((a, b) => this.sorted.sign * (value(a) - value(b)) || a.w - b.w || a.r - b.r);
    }
    const sort = (name) => el("th", { scope: "col", "aria-sort": this.sorted?.name === name ? (this.sorted.sign > 0 ? "ascending" : "descending") : "none" },
      button(name, () => { this.sorted = this.sorted?.name !== name ? { name, sign: 1 } : this.sorted.sign > 0 ? { name, sign: -1 } : null; render(state); }, { "data-key": `sort-${name}`, "aria-label": `sort by ${name}` }));
    const body = rows.map((row) => el("tr", {}, el("th", { scope: "row" }, row.world), el("td", { class: "soft" }, row.unit), v.variables.map((name, k) => {
      const isSet = row.set.includes(name), isWrong = wrong[`${row.w}.${row.r}.${name}`];
      return el("td", { class: `number${isSet ? " clamped" : ""}${isWrong ? " wrong" : ""}` }, el("span", {}, row.bits[k] + (isSet ? " set" : "") + (isWrong ? " \u2717" : "")));
    })));
    const head = el("tr", {}, el("th", { scope: "col" }, "World"), el("th", { scope: "col" }, "Unit"), v.variables.map(sort));
    const worlds = el("div", { class: "scroll worlds", tabindex: 0, role: "region", "aria-label": "Worlds" }, el("table", {}, el("caption", {}, "Striped values were set by an intervention"), el("thead", {}, head), el("tbody", {}, body)));
    return [v.episode ? this.ask(item, frozen) : null, this.formulas(item, frozen), cellsKnown ? el("p", {}, button("Wrong rows first", () => { this.sorted = this.wrongFirst() ? null : { name: "wrong", sign: 1 }; this.chose = true; render(state); }, { "data-key": "wrong-first", "aria-pressed": String(this.wrongFirst()) })) : null, worlds];
  },
  ask(item, frozen) {
    const v = item.view, e = v.episode, chosen = this.chosen || {};
    this.chosen = chosen;
    const selects = v.variables.map((name) => el("label", {}, `${name} `, el("select", { "data-key": `do-${name}`, disabled: frozen || item.left <= 0, onchange: (event) => { chosen[name] = event.target.value; } },
      ["free", "0", "1"].map((text) => el("option", { value: text, selected: (chosen[name] || "free") === text }, text)))));
    const contexts = e.contexts === "chosen" ? el("input", { type: "text", "data-key": "contexts", "aria-label": `root values, in the order ${e.roots.join(", ")}, such as ${"0".repeat(e.roots.length)}`, value: "0".repeat(e.roots.length), disabled: frozen || item.left <= 0 }) : null;
    const go = () => {
      const action = { do: {} };
      for (const name of v.variables) if (chosen[name] === "0" || chosen[name] === "1") action.do[name] = Number(chosen[name]);
      if (contexts) action.contexts = contexts.value.split(/[\s,]+/).filter(Boolean);
      return send("act", { action });
    };
    return el("fieldset", {}, el("legend", {}, `Ask for a world: ${item.left} of ${e.worlds} left`),
      el("p", { class: "soft" }, `Set at most ${e.max_targets}; the others follow their mechanisms.`),
      el("div", { class: "row" }, selects, contexts ? el("label", {}, "root values ", contexts) : null, button("Ask", go, { "data-key": "ask", disabled: frozen || item.left <= 0 })));
  },
  formulas(item, frozen) {
    const v = item.view, draft = { formulas: {}, ...item.draft, roots: [...(item.draft.roots || [])] };
    draft.formulas = { ...draft.formulas };
    const isRoot = (name) => (v.roots || draft.roots).includes(name);
    const targets = [...v.variables.filter((name) => !isRoot(name)), ...v.hidden];
    const boxes = targets.map((name, k) => {
      const judged = item.cells?.[name], problem = item.problems[name];
      const input = el("input", { type: "text", value: draft.formulas[name] || "", "data-key": `formula-${name}`, "aria-label": `formula of ${name}`, "aria-describedby": `under-${name}`, "aria-invalid": Boolean(problem), spellcheck: "false", autocomplete: "off", autocapitalize: "off", inputmode: this.keyboard || !matchMedia("(pointer: coarse)").matches ? null : "none", disabled: frozen,
        onfocus: () => this.movePad(v, name),
        oninput: (e) => { draft.formulas[name] = e.target.value; writeDraft(draft, 400); },
        onkeydown: (e) => { if (e.key !== "Enter" || e.ctrlKey) return; e.preventDefault(); flushDraft().then(() => { if (targets[k + 1]) screen_.querySelector(`[data-key="formula-${CSS.escape(targets[k + 1])}"]`)?.focus(); else submitByKey(e); }); } });
      const under = problem ? el("span", { class: "bad" }, problem) : judged ? el("span", { class: judged.wrong.length ? "bad" : "good" }, `${judged.wrong.length ? "\u2717" : "\u2713"} ${judged.right} of ${judged.total} cells`) : "";
      return el("div", { class: "formula", "data-formula": name }, el("span", {}, `${name} =`, v.hidden.includes(name) ? el("span", { class: "soft" }, " never shown") : null), input, el("span", { class: "under", id: `under-${name}` }, under), !frozen && name === (targets.includes(this.active) ? this.active : targets[0]) ? this.pad(v, name) : null);
    });
    const roots = v.roots ? null : el("div", { class: "row", role: "group", "aria-label": "Roots" }, el("span", {}, `${v.num_roots} roots:`), v.variables.map((name) => el("label", {}, el("input", { type: "checkbox", "data-key": `root-${name}`, checked: draft.roots.includes(name), disabled: frozen,
      onchange: (e) => { draft.roots = v.variables.filter((n) => n === name ? e.target.checked : draft.roots.includes(n)); writeDraft(draft); } }), ` ${name}`)));
    const noise = v.noise.length ? el("label", {}, "rate of errors ", el("select", { "data-key": "noise", disabled: frozen, onchange: (e) => { draft.noise = e.target.value || null; writeDraft(draft); } }, ["", ...v.noise].map((text) => el("option", { value: text, selected: (draft.noise || "") === text }, text || "choose")))) : null;
    return el("fieldset", {}, el("legend", {}, "Your mechanisms, as formulas"), roots, boxes, el("p", { class: "soft" }, `${v.operators.join(", ")}, parentheses; X1 and not X2, or (and X1 (not X2)).`), noise, v.alternative ? this.alternative(item, draft, frozen) : null, v.forecast ? this.forecast(item, draft, frozen) : null, picture(item),
      el("div", { class: "row" }, submitButton("Ctrl+Enter"), undoButton(item)));
  },
  // tokens to press below the formula that has the focus: formulas without a keyboard, on a phone
  movePad(v, name) {
    this.active = name;
    if (document.getElementById("pad")?.parentElement.dataset.formula === name) return;
    document.getElementById("pad")?.remove();
    screen_.querySelector(`[data-formula="${CSS.escape(name)}"]`)?.append(this.pad(v, name));
  },
  pad(v, name) {
    const input = () => screen_.querySelector(`[data-key="formula-${CSS.escape(name)}"]`);
    const press = (change) => () => {
      const box = input(), [text, caret] = change(box.value, box.selectionStart ?? box.value.length);
      box.value = text;
      if (document.activeElement !== box) box.focus({ preventScroll: true });
      box.setSelectionRange(caret, caret);
      box.dispatchEvent(new Event("input"));
    };
    const insert = (token, back = 0) => press((text, at) => {
      const before = text.slice(0, at), space = before && !/[\s(]$/.test(before) ? " " : "";
      const added = space + token, rest = text.slice(at);
      const after = back || !rest || /^[\s)]/.test(rest) ? rest : ` ${rest}`;
      return [before + added + after, at + added.length - back];
    });
    const erase = press((text, at) => { const before = text.slice(0, at).replace(/(\w+|\S)?\s*$/, ""); return [before + text.slice(at), before.length]; });
    const step = (by) => press((text, at) => [text, Math.max(0, Math.min(text.length, at + by))]);
    const key = (label, act, named) => button(label, act, { "data-key": `pad-${named || label}`, "aria-label": named || label, onpointerdown: (e) => e.preventDefault() });
    const others = v.names.filter((other) => other !== name);
    const words = v.operators.filter((word) => ["and", "or", "not", "xor", "iff"].includes(word));
    return el("div", { id: "pad", class: "pad", role: "group", "aria-label": `tokens for the formula of ${name}` },
      others.map((other) => key(other, insert(other))), words.map((word) => key(word, insert(word))), key("( )", insert("()", 1), "parentheses"),
      key("\u2190", step(-1), "left"), key("\u2192", step(1), "right"), key("\u232b", erase, "erase"),
      key("abc", () => { this.keyboard = !this.keyboard; const box = input(); if (this.keyboard) box.removeAttribute("inputmode"); else box.setAttribute("inputmode", "none"); box.blur(); box.focus(); }, "keyboard"));
  },
  alternative(item, draft, frozen) {
    const { roots, others } = item.view.alternative, all = item.view.variables;
    const choose = (key, label, options, chosen, change) => el("label", {}, `${label} `, el("select", { "data-key": key, disabled: frozen, onchange: (e) => { change(e.target.value); writeDraft(draft); } }, options.map(([value, text]) => el("option", { value, selected: value === chosen }, text))));
    const [[set, bit] = ["", 0]] = Object.entries(draft.experiment || {});
    const settings = all.flatMap((name) => [0, 1].map((value) => [`${name}=${value}`, `${name} = ${value}`]));
    const experiment = choose("experiment", "set", [["", "choose"], ...settings], set ? `${set}=${bit}` : "", (value) => { const [name, text] = value.split("="); draft.experiment = value ? { [name]: Number(text) } : {}; });
    const witness = { ...draft.witness }, differences = { ...draft.differences };
    const at = roots.map((name) => choose(`witness-${name}`, `${name} =`, [["", "choose"], ["0", "0"], ["1", "1"]], name in witness ? String(witness[name]) : "", (value) => { if (value) witness[name] = Number(value); else delete witness[name]; draft.witness = witness; }));
    const differs = others.map((name) => choose(`differs-${name}`, name, [["", "not claimed"], ["0,1", "0 in the reference, 1 in yours"], ["1,0", "1 in the reference, 0 in yours"]], name in differences ? differences[name].join() : "", (value) => { if (value) differences[name] = value.split(",").map(Number); else delete differences[name]; draft.differences = differences; }));
    return el("fieldset", {}, el("legend", {}, "Experiment that tells yours from the reference"), el("div", { class: "row" }, experiment), el("p", { class: "soft" }, "Values of the roots at which the two differ:"), el("div", { class: "row" }, at), el("p", { class: "soft" }, "What differs there:"), el("div", { class: "row" }, differs));
  },
  forecast(item, draft, frozen) {
    const v = item.view, stated = { ...draft.forecast };
    const tables = v.forecast.map((world, w) => {
      const setting = Object.entries(world.set).map(([name, bit]) => `${name} = ${bit}`).join(", ") || "nothing";
      const heads = [`${v.forecast_roots.join(" ")}`, ...world.free].map((text) => el("th", { scope: "col" }, text));
      const rows = world.rows.map((roots, r) => el("tr", {}, el("th", { scope: "row" }, roots.split("").join(" ")), world.free.map((name) => {
        const key = `${w + 1}.${r + 1}.${name}`;
        return el("td", {}, el("input", { type: "number", min: 0, max: 1, step: "any", value: stated[key] ?? "", "data-key": `chance-${key}`, "aria-label": `probability of ${name} = 1 in row ${r + 1} of world ${w + 1}`, disabled: frozen,
          onchange: (e) => { if (e.target.value === "") delete stated[key]; else stated[key] = Number(e.target.value); draft.forecast = stated; writeDraft(draft); } }));
      })));
      return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `World ${w + 1}` }, el("table", {}, el("caption", {}, `World ${w + 1}: set ${setting}`), el("thead", {}, el("tr", {}, heads)), el("tbody", {}, rows)));
    });
    return el("details", { open: Object.keys(stated).length > 0 }, el("summary", { "data-key": "forecast" }, "Probabilities in place of formulas"), el("p", { class: "soft" }, "Of each row the probability that a variable is 1. Where any is written, they are sent, and formulas are not."), tables);
  },
};
