views.detector = {
  on(item) {
    const on = [];
    for (const step of item.steps) {
      if (step.refused) continue;
      on.push(...(step.action.start || []));
      if (step.action.place) on.push(step.action.place);
      if (step.action.remove) on.splice(on.indexOf(step.action.remove), 1);
    }
    return on;
  },
  render(item) {
    const on = this.on(item), frozen = isFrozen() || item.left <= 0;
    const readings = item.steps.filter((s) => s.reading);
    const last = readings.length ? readings[readings.length - 1].reading : "no reading yet";
    const draft = { rule: item.draft.rule ?? null, blickets: [...(item.draft.blickets || [])] };
    const objects = item.view.objects.map((name) => button(name, () => this.toggle(name), {
      "aria-pressed": on.includes(name), "aria-label": `${name}, ${on.includes(name) ? "on" : "off"} the detector`, "data-key": `object-${name}`, disabled: frozen }));
    const history = item.steps.filter((s) => s.action.place || s.action.remove).map((s) => {
      const name = s.action.place || s.action.remove, sign = s.action.place ? "+" : "\u2212";
      const result = s.refused ? "refused" : s.reading;
      return el("li", { class: String(s.reading).startsWith("ACTIVE") ? "on" : "", title: `${sign}${name}: ${result}` }, `${sign}${name}`, el("span", { class: "soft" }, ` ${String(result).toLowerCase()}`));
    });
    const choose = (change) => { change(draft); writeDraft(draft); };
    const radio = (rule, text) => el("label", {}, el("input", { type: "radio", name: "rule", "data-key": `rule-${rule}`, disabled: isFrozen(), checked: draft.rule === rule, onchange: () => choose((d) => { d.rule = rule; }) }), ` ${text}`);
    const ticks = item.view.objects.map((name) => el("label", {}, el("input", { type: "checkbox", "data-key": `blicket-${name}`, disabled: isFrozen(), checked: draft.blickets.includes(name),
      onchange: (e) => choose((d) => { d.blickets = item.view.objects.filter((n) => n === name ? e.target.checked : d.blickets.includes(n)); }) }), ` ${name}`));
    return [
      el("div", { class: "objects", role: "group", "aria-label": "Objects: press to put on the detector or take off" }, objects),
      el("p", { class: `light ${String(last).startsWith("ACTIVE") ? "on" : ""}` }, last),
      el("p", { class: "soft" }, on.length ? `On the detector: ${on.join(", ")}.` : "The detector is empty."),
      history.length ? el("ol", { class: "moves", tabindex: 0, "aria-label": "Your moves, oldest first" }, history) : null,
      el("fieldset", {}, el("legend", {}, "Your answer"),
        el("div", { class: "row", role: "radiogroup", "aria-label": "Type of rule" }, radio("conjunctive", "conjunctive: all are needed"), radio("disjunctive", "disjunctive: at least one is enough")),
        el("div", { class: "row", role: "group", "aria-label": "Blickets" }, ticks),
        el("div", { class: "row" }, submitButton("S"), undoButton(item))),
    ];
  },
  toggle(name) {
    const verb = this.on(state.item).includes(name) ? "remove" : "place";
    return send("act", { action: { [verb]: name } });
  },
  key(event, item) {
    if (event.key.toLowerCase() === "s" && !item.view.objects.some((n) => n.toLowerCase() === "s")) { submitByKey(event); return true; }
    const named = item.view.objects.filter((n) => n.toLowerCase() === event.key.toLowerCase());
    if (named.length === 1 && !isFrozen() && item.left > 0) { this.toggle(named[0]); return true; }
    return false;
  },
};
