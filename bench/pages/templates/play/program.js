views.program = {
  marks: {},
  folded: {},
  line: 0,
  render(item) {
    const v = item.view, frozen = isFrozen(), draft = { ...item.draft };
    const marks = (this.marks[item.id] ||= new Set());
    const fields = v.fields.map((field) => {
      const value = draft[field.name] !== undefined ? draft[field.name] : field.given;
      const change = (chosen) => { if (chosen === undefined) delete draft[field.name]; else draft[field.name] = chosen; writeDraft(draft); };
      const text = JSON.stringify(value);
      const control = field.choices.length
        ? el("select", { "data-key": `field-${field.name}`, disabled: frozen, onchange: (e) => change(e.target.value === "" ? undefined : field.choices[Number(e.target.value)].value) },
          el("option", { value: "" }, "choose"), field.choices.map((c, k) => el("option", { value: k, selected: value !== undefined && JSON.stringify(c.value) === text }, c.text)))
        : el("input", { type: "text", "data-key": `field-${field.name}`, value: value === undefined ? "" : text, disabled: frozen, onchange: (e) => { try { change(JSON.parse(e.target.value)); } catch { change(e.target.value); } } });
      return el("label", {}, `${field.name}${field.given !== undefined ? " (set by do)" : ""} `, control);
    });
    return [
      el("div", { class: "facts" }, v.parts.slice(1).map((part) => el("p", {}, part))),
      v.is_code ? this.listing(v.model, marks, item.id) : el("div", { class: "facts" }, el("p", {}, v.model)),
      el("details", {}, el("summary", {}, "How the system works"), el("div", { class: "facts" }, el("p", {}, v.parts[0]))),
      el("fieldset", {}, el("legend", {}, "Your answer"), el("div", { class: "row" }, fields), el("div", { class: "row" }, submitButton("Ctrl+Enter"), undoButton(item))),
    ];
  },
  // functions of a listing: first line, and the line after their last one
  functions(lines) {
    const starts = lines.map((text, k) => [/^def (\w+)/.exec(text)?.[1], k]).filter(([name]) => name);
    return starts.map(([name, from]) => {
      let to = from + 1;
      while (to < lines.length && (!lines[to].trim() || /^\s/.test(lines[to]))) to += 1;
      while (!lines[to - 1].trim()) to -= 1;
      return { name, from, to };
    });
  },
  listing(model, marks, id) {
    const lines = model.split("\n"), functions = this.functions(lines);
    const folded = (this.folded[id] ||= new Set(lines.length > 60 ? functions.map((f) => f.name) : []));
    const isHidden = (k) => functions.some((f) => folded.has(f.name) && f.from < k && k < f.to);
    this.line = Math.min(this.line, lines.length - 1);
    while (isHidden(this.line)) this.line -= 1;
    const fold = (f) => { if (folded.has(f.name)) folded.delete(f.name); else folded.add(f.name); render(state); };
    const chips = functions.length < 2 ? null : el("div", { class: "row", role: "group", "aria-label": "Functions: press to fold or to open" }, functions.map((f) => button(f.name, () => fold(f), { "aria-expanded": String(!folded.has(f.name)), "data-key": `fold-${f.name}` })));
    const list = el("ol", { class: "listing", role: "listbox", tabindex: 0, "aria-label": "Program: arrows move, m marks a line", "data-key": "listing", "aria-multiselectable": "true", "aria-activedescendant": `line-${this.line}` },
      lines.map((text, k) => isHidden(k) ? null : el("li", { id: `line-${k}`, translate: "no", role: "option", "data-number": k + 1, "aria-label": `line ${k + 1}: ${text.trim() || "empty"}${marks.has(k) ? ", marked" : ""}`, class: marks.has(k) ? "marked" : "", "aria-selected": k === this.line, onclick: () => { this.line = k; this.mark(k, marks, list); } }, text || " ", functions.filter((f) => f.from === k && folded.has(f.name)).map((f) => el("span", { class: "soft" }, `  \u2026 ${f.to - f.from - 1} lines`)), marks.has(k) ? el("span", { class: "soft" }, "  marked") : null)));
    list.addEventListener("keydown", (e) => {
      const beside = (step) => { let k = this.line + step; while (isHidden(k)) k += step; return k; };
      const to = { ArrowDown: beside(1), ArrowUp: beside(-1), Home: 0, End: lines.length - 1 }[e.key];
      if (to !== undefined) { e.preventDefault(); this.line = Math.max(0, Math.min(lines.length - 1, to)); render(state); screen_.querySelector(`#line-${this.line}`).scrollIntoView({ block: "nearest" }); }
      else if (e.key === "m") { e.preventDefault(); e.stopPropagation(); this.mark(this.line, marks, list); }
    });
    return [chips, list];
  },
  mark(k, marks) { if (marks.has(k)) marks.delete(k); else marks.add(k); render(state); },
};
