views.network = {
  target: null,
  render(item) {
    const v = item.view, frozen = isFrozen(), draft = { model: [...(item.draft.model || [])], probabilities: { ...item.draft.probabilities } };
    const targets = Object.keys(v.sources);
    if (!targets.includes(this.target)) this.target = targets[0];
    const sources = v.sources[this.target] || [], chosen = new Set();
    const boxes = sources.map(([source, sign]) => el("label", {}, el("input", { type: "checkbox", "data-key": `source-${source}`, disabled: frozen, onchange: (e) => { if (e.target.checked) chosen.add(source); else chosen.delete(source); } }), ` ${sign < 0 ? "not " : ""}${source}`));
    const add = () => {
      if (!chosen.size) { show("tick what has to hold"); return; }
      draft.model.push(`${this.target}<-${sources.filter(([source]) => chosen.has(source)).map(([source, sign]) => (sign < 0 ? "!" : "") + source).join("+")}`);
      writeDraft(draft);
    };
    const written = draft.model.map((text) => el("li", {}, el("code", {}, text), " ", button("remove", () => { draft.model = draft.model.filter((other) => other !== text); writeDraft(draft); }, { "data-key": `drop-${text}`, "aria-label": `remove ${text}`, disabled: frozen })));
    const select = el("select", { "data-key": "target", disabled: frozen, onchange: (e) => { this.target = e.target.value; render(state); } }, targets.map((name) => el("option", { value: name, selected: name === this.target }, name)));
    const measured = table("What was measured, from 0 to 1; - was not", ["Experiment", ...v.readouts.map((text) => ({ text, number: true }))], v.measured.map(([text, values]) => [text, ...values]));
    return [
      measured,
      el("fieldset", {}, el("legend", {}, "Your model"), el("p", { class: "soft" }, "A node is 1 where one of its clauses holds: all that is ticked, together."),
        el("div", { class: "row" }, el("label", {}, "node ", select), el("span", {}, "is 1 where"), boxes, button("Add clause", add, { "data-key": "add", disabled: frozen })),
        written.length ? el("ul", { "aria-label": "Clauses" }, written) : el("p", { class: "soft" }, "No clause is written."), picture(item),
        v.questions.length ? this.chances(v, draft, frozen) : null,
        el("div", { class: "row" }, submitButton("Ctrl+Enter"), undoButton(item))),
    ];
  },
  chances(v, draft, frozen) {
    const rows = v.questions.map((question, k) => el("tr", {}, el("th", { scope: "row" }, `${k + 1}. ${question}`), v.readouts.map((name) => el("td", {}, el("input", { type: "number", min: 0, max: 1, step: "any", value: draft.probabilities[`${k + 1}.${name}`] ?? "", "data-key": `chance-${k + 1}-${name}`, "aria-label": `probability of ${name} = 1 in experiment ${k + 1}`, disabled: frozen,
      onchange: (e) => { const key = `${k + 1}.${name}`; if (e.target.value === "") delete draft.probabilities[key]; else draft.probabilities[key] = Number(e.target.value); writeDraft(draft); } })))));
    const head = el("tr", {}, el("th", { scope: "col" }, "New experiment"), v.readouts.map((name) => el("th", { scope: "col" }, name)));
    return el("details", { open: Object.keys(draft.probabilities).length > 0 }, el("summary", {}, "Probabilities in place of a model"), el("p", { class: "soft" }, "Where any is written, they are sent, and clauses are not."),
      el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "New experiments" }, el("table", {}, el("thead", {}, head), el("tbody", {}, rows))));
  },
};
