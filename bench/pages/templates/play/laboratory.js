const shown = (value) => value === undefined ? "?" : String(Math.round(value * 100) / 100);
views.laboratory = {
  render(item) {
    const v = item.view, frozen = isFrozen();
    const readings = item.steps.filter((s) => s.reading && s.action.set !== undefined);
    const tried = item.steps.filter((s) => s.reading && s.action.reactor !== undefined);
    const now = readings.length ? readings[readings.length - 1].reading : v.baseline;
    const all = [v.baseline, ...v.crystals, ...readings.map((s) => s.reading)];
    const top = (name) => Math.max(100, ...all.map((c) => 2 * Math.abs(c[name] ?? 0)));
    const dials = v.settable.map((name) => {
      const number = el("input", { type: "number", step: "any", value: now[name], "aria-label": `${name}, value to set`, "data-key": `number-${name}`, disabled: frozen || item.left <= 0 });
      const slider = el("input", { type: "range", min: 0, max: Math.ceil(top(name)), step: 1, value: now[name], "aria-label": `${name}, slider`, "data-key": `slider-${name}`, disabled: frozen || item.left <= 0 });
      const set = () => number.value !== "" && send("act", { action: { set: name, value: Number(number.value) } });
      slider.addEventListener("input", () => { number.value = slider.value; });
      number.addEventListener("input", () => { slider.value = number.value; });
      for (const input of [number, slider]) input.addEventListener("keydown", (e) => { if (e.key === "Enter" && !e.ctrlKey) { e.preventDefault(); set(); } });
      return el("div", { class: "row" }, el("span", { style: "min-width:9em" }, name), slider, number, button("set", set, { "aria-label": `set ${name}`, "data-key": `set-${name}`, disabled: frozen || item.left <= 0 }));
    });
    const rows = [];
    readings.forEach((s, k) => {
      const before = k ? readings[k - 1].reading : v.baseline;
      rows.unshift([`${s.action.set} = ${shown(s.action.value)}`, ...v.nodes.map((n) => el("td", { class: `number${s.reading[n] !== before[n] ? " changed" : ""}` }, shown(s.reading[n]), n === s.action.set ? el("span", { class: "soft" }, " set") : null))]);
    });
    rows.push(["at the start", ...v.nodes.map((n) => shown(v.baseline[n]))]);
    const others = v.crystals.map((c, k) => [`crystal ${k + 1}`, ...v.nodes.map((n) => shown(c[n]))]);
    v.series.forEach((s) => others.push([s.property ? `${s.property} = ${shown(s.value)}` : "series", ...v.nodes.map((n) => shown(s.values[n]))]));
    others.push(["reactor crystal", ...v.nodes.map((n) => shown(v.reactor[n]))]);
    const heads = ["reading", ...v.nodes.map((text) => ({ text, number: true }))];
    const dial = el("input", { type: "number", step: "any", id: "dial", "data-key": "dial", disabled: frozen || tried.length >= v.tries });
    const test = () => dial.value !== "" && send("act", { action: { reactor: Number(dial.value) } });
    dial.addEventListener("keydown", (e) => { if (e.key === "Enter" && !e.ctrlKey) { e.preventDefault(); test(); } });
    return [
      dials.length ? el("fieldset", {}, el("legend", {}, `Manipulator crystal: ${item.left} of ${v.allowance} settings left`), dials) : null,
      table("Manipulator crystal, newest first; changed values are marked", heads, rows),
      table("Other crystals", ["crystal", ...heads.slice(1)], others),
      this.causes(item, frozen),
      el("fieldset", {}, el("legend", {}, "Reactor"),
        el("div", { class: "row" }, el("label", { for: "dial" }, "resonance frequency"), dial, button("try it", test, { "data-key": "try", disabled: frozen || tried.length >= v.tries }),
          el("span", { class: "soft" }, `${v.tries - tried.length} of ${v.tries} tries left; after the first nothing can be set`)),
        tried.length ? el("ol", { class: "moves", tabindex: 0, "aria-label": "Tries of the reactor" }, tried.map((s) => el("li", { class: s.reading.activated ? "on" : "" }, `${shown(s.action.reactor)}: ${s.reading.activated ? "activated" : "off"}`))) : null),
      el("div", { class: "row" }, submitButton("Ctrl+Enter"), undoButton(item)),
    ];
  },
  causes(item, frozen) {
    const v = item.view, draft = { edges: [], weights: {}, squares: {}, ...item.draft };
    const has = (a, b) => draft.edges.some(([x, y]) => x === a && y === b);
    const rows = v.causes.map((cause) => [cause, ...v.nodes.map((effect) => el("td", { class: "middle" }, cause === effect ? "\u00b7" : el("input", {
      type: "checkbox", "aria-label": `${cause} causes ${effect}`, "data-key": `edge-${cause}-${effect}`, checked: has(cause, effect), disabled: frozen,
      onchange: (e) => { draft.edges = draft.edges.filter(([x, y]) => x !== cause || y !== effect); if (e.target.checked) draft.edges.push([cause, effect]); writeDraft(draft); } })))]);
    const number = (label, key, value, change) => el("label", {}, `${label} `, el("input", { type: "number", step: "any", value: value ?? "", "data-key": key, disabled: frozen, onchange: (e) => { change(e.target.value === "" ? undefined : Number(e.target.value)); writeDraft(draft); } }));
    const keyed = (group, name) => (value) => { if (value === undefined) delete draft[group][name]; else draft[group][name] = value; };
    const parents = v.causes.filter((c) => has(c, v.frequency));
    const terms = parents.filter((c) => v.properties.includes(c)).flatMap((c) => [number(`\u00d7 ${c}`, `weight-${c}`, draft.weights[c], keyed("weights", c)), v.quadratic ? number(`\u00d7 ${c}\u00b2`, `square-${c}`, draft.squares[c], keyed("squares", c)) : null]);
    return el("fieldset", {}, el("legend", {}, "What causes what"),
      table("Tick where the row causes the column", ["cause", ...v.nodes], rows), picture(item),
      el("div", { class: "row" }, el("span", {}, `${v.frequency} =`), number("base", "base", draft.base, (value) => { if (value === undefined) delete draft.base; else draft.base = value; }), terms));
  },
};
