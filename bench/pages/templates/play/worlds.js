views.worlds = {
  sorted: null,
  tables(item) {
    const v = item.view, worlds = v.worlds.map((w) => ({ ...w }));
    for (const step of item.steps) if (step.reading) worlds.push({ id: `world ${step.reading.world}`, units: step.reading.rows.map((_, k) => `row ${k + 1}`), rows: step.reading.rows, set: Object.keys(step.action.do || {}) });
    return worlds;
  },
  render(item) {
    const v = item.view, frozen = isFrozen(), wrong = {};
    for (const [name, judged] of Object.entries(item.cells || {})) for (const [w, r] of judged.wrong) wrong[`${w}.${r}.${name}`] = true;
    const rows = [];
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
    const worlds = el("div", { class: "scroll worlds", tabindex: 0, role: "region", "aria-label": "Worlds" }, el("table", {}, el("caption", {}, "Striped values were set by hand"), el("thead", {}, head), el("tbody", {}, body)));
    return [v.episode ? this.ask(item, frozen) : null, v.as_json ? this.asJson(item, frozen) : this.formulas(item, frozen), worlds];
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
    const targets = v.variables.filter((name) => !isRoot(name));
    const boxes = targets.map((name, k) => {
      const judged = item.cells?.[name], problem = item.problems[name];
      const input = el("input", { type: "text", value: draft.formulas[name] || "", "data-key": `formula-${name}`, "aria-label": `formula of ${name}`, "aria-describedby": `under-${name}`, "aria-invalid": Boolean(problem), spellcheck: "false", autocomplete: "off", disabled: frozen,
        oninput: (e) => { draft.formulas[name] = e.target.value; writeDraft(draft, 400); },
        onkeydown: (e) => { if (e.key !== "Enter" || e.ctrlKey) return; e.preventDefault(); flushDraft().then(() => screen_.querySelector(targets[k + 1] ? `[data-key="formula-${CSS.escape(targets[k + 1])}"]` : '[data-key="submit"]')?.focus()); } });
      const under = problem ? el("span", { class: "bad" }, problem) : judged ? el("span", { class: judged.wrong.length ? "bad" : "good" }, `${judged.wrong.length ? "\u2717" : "\u2713"} ${judged.right} of ${judged.total} cells`) : "";
      return el("div", { class: "formula" }, el("span", {}, `${name} =`), input, el("span", { class: "under", id: `under-${name}` }, under));
    });
    const roots = v.roots ? null : el("div", { class: "row", role: "group", "aria-label": "Roots" }, el("span", {}, `${v.num_roots} roots:`), v.variables.map((name) => el("label", {}, el("input", { type: "checkbox", "data-key": `root-${name}`, checked: draft.roots.includes(name), disabled: frozen,
      onchange: (e) => { draft.roots = v.variables.filter((n) => n === name ? e.target.checked : draft.roots.includes(n)); writeDraft(draft); } }), ` ${name}`)));
    const noise = v.noise.length ? el("label", {}, "rate of errors ", el("select", { "data-key": "noise", disabled: frozen, onchange: (e) => { draft.noise = e.target.value || null; writeDraft(draft); } }, ["", ...v.noise].map((text) => el("option", { value: text, selected: (draft.noise || "") === text }, text || "choose")))) : null;
    return el("fieldset", {}, el("legend", {}, "Your formulas"), roots, boxes, el("p", { class: "soft" }, `${v.operators.join(", ")}, parentheses; X1 and not X2, or (and X1 (not X2)).`), noise, picture(item),
      el("div", { class: "row" }, submitButton("Ctrl+Enter"), undoButton(item)));
  },
  asJson(item, frozen) {
    const box = el("textarea", { "data-key": "json", "aria-label": "your answer as JSON", disabled: frozen, oninput: (e) => writeDraft({ json: e.target.value }, 600) });
    box.value = item.draft.json || "";
    const press = async () => {
      if (!(await flushDraft())) return;
      try { await send("act", { action: { submit: JSON.parse(box.value) } }); } catch { show("the answer is no JSON"); }
    };
    return el("fieldset", {}, el("legend", {}, "Your answer as JSON, in the form that is described above"), box, el("div", { class: "row" }, button("Submit", press, { class: "first", "data-key": "submit", disabled: frozen })));
  },
};
