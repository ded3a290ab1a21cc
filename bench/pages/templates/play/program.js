views.program = {
  marks: {},
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
      return el("label", {}, `${field.name}${field.given !== undefined ? " (set)" : ""} `, control);
    });
    return [
      el("div", { class: "facts" }, v.parts.slice(1).map((part) => el("p", {}, part))),
      v.is_code ? this.listing(v.model, marks) : el("div", { class: "facts" }, el("p", {}, v.model)),
      el("details", {}, el("summary", {}, "How the system works"), el("div", { class: "facts" }, el("p", {}, v.parts[0]))),
      el("fieldset", {}, el("legend", {}, "Your answer"), el("div", { class: "row" }, fields), el("div", { class: "row" }, submitButton("Ctrl+Enter"), undoButton(item))),
    ];
  },
  listing(model, marks) {
    const lines = model.split("\n");
    this.line = Math.min(this.line, lines.length - 1);
    const list = el("ol", { class: "listing", role: "listbox", tabindex: 0, "aria-label": "Program: arrows move, m marks a line", "data-key": "listing", "aria-multiselectable": "true", "aria-activedescendant": `line-${this.line}` },
      lines.map((text, k) => el("li", { id: `line-${k}`, role: "option", "data-number": k + 1, "aria-label": `line ${k + 1}: ${text.trim() || "empty"}${marks.has(k) ? ", marked" : ""}`, class: marks.has(k) ? "marked" : "", "aria-selected": k === this.line, onclick: () => { this.line = k; this.mark(k, marks, list); } }, text || " ", marks.has(k) ? el("span", { class: "soft" }, "  marked") : null)));
    list.addEventListener("keydown", (e) => {
      const to = { ArrowDown: this.line + 1, ArrowUp: this.line - 1, Home: 0, End: lines.length - 1 }[e.key];
      if (to !== undefined) { e.preventDefault(); this.line = Math.max(0, Math.min(lines.length - 1, to)); render(state); screen_.querySelector(`#line-${this.line}`).scrollIntoView({ block: "nearest" }); }
      else if (e.key === "m") { e.preventDefault(); e.stopPropagation(); this.mark(this.line, marks, list); }
    });
    return list;
  },
  mark(k, marks) { if (marks.has(k)) marks.delete(k); else marks.add(k); render(state); },
};
