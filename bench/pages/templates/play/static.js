// a page without a server: answers stay in this browser until they are saved as a file
const saved = { stops: {}, place: 0, begun: false, agreed: false, participant: "", drafts: [{}], since: 0 };
const storageKey = () => `calibrant-${EMBEDDED.plan.key}-${EMBEDDED.participant}`;
function keep() { try { localStorage.setItem(storageKey(), JSON.stringify(saved)); } catch { /* kept in this window alone */ } }
function localState() {
  const plan = EMBEDDED.plan, items = plan.stops.filter((s) => s.phase === "item");
  const base = { title: plan.title, participant: saved.participant, feedback: "none", items: items.length, done: 0, writer: true };
  if (!saved.begun) return { ...base, phase: "start", consent: plan.consent, task: plan.task, privacy: plan.privacy };
  const stop = plan.stops[saved.place];
  if (!stop) return { ...base, phase: "end", verdicts: [] };
  Object.assign(base, { steps: plan.stops.length, step: saved.place + 1 });
  if (stop.phase === "questions") return { ...base, ...stop };
  const draft = saved.drafts[saved.drafts.length - 1];
  return { ...base, phase: "item", number: items.indexOf(stop) + 1, item: { ...stop.item, draft, can_undo: saved.drafts.length > 1 } };
}
function advance(entry) {
  saved.stops[entry.stop] = { ...entry, seconds: Math.max(0, (Date.now() - saved.since) / 1000) };
  saved.place += 1;
  saved.drafts = [{}];
  saved.since = Date.now();
}
function missing(item, draft) {
  const v = item.view, has = (name) => (draft.formulas?.[name] || "").trim();
  if (v.view === "program") return v.fields.filter((f) => f.given === undefined && draft[f.name] === undefined).map((f) => f.name);
  if (v.forecast && Object.keys(draft.forecast || {}).length) return [];
  if (v.alternative) for (const part of ["experiment", "witness", "differences"]) if (!Object.keys(draft[part] || {}).length) return [part];
  if (v.roots === null && (draft.roots || []).length !== v.num_roots) return [`${v.num_roots} roots`];
  return v.variables.filter((name) => !(v.roots || draft.roots).includes(name) && !has(name));
}
function localRequest(path, body) {
  const verb = path.split("?")[0], stop = EMBEDDED.plan.stops[saved.place];
  const refuse = (problem) => ({ status: 422, data: { problem } });
  if (verb === "begin") {
    if (EMBEDDED.plan.consent && !body.agreed) return refuse("please read the text and agree to it first");
    Object.assign(saved, { begun: true, agreed: Boolean(body.agreed), since: Date.now() });
  } else if (verb === "draft") saved.drafts.push(body.draft);
  else if (verb === "undo") { if (saved.drafts.length > 1) saved.drafts.pop(); } else if (verb === "submit") {
    const draft = saved.drafts[saved.drafts.length - 1], gaps = missing(stop.item, draft);
    if (gaps.length) return refuse(`please answer: ${gaps.join(", ")}`);
    advance({ stop: stop.item.id, draft });
  } else if (verb === "quit") advance({ stop: stop.item.id, draft: null });
  else if (verb === "answers") {
    const open = stop.questions.filter((q) => !q.optional && (body.answers[q.id] === undefined || body.answers[q.id] === ""));
    if (open.length) return refuse(`please answer: ${open[0].text}`);
    advance({ stop: stop.name, answers: body.answers });
  }
  keep();
  return { status: 200, data: localState() };
}
function download() {
  const data = { participant: saved.participant, agreed: saved.agreed, digests: EMBEDDED.plan.digests, stops: Object.values(saved.stops), version: 1 };
  const link = el("a", { href: URL.createObjectURL(new Blob([JSON.stringify(data)], { type: "application/json" })), download: `${saved.participant}-${EMBEDDED.plan.key.slice(0, 6)}.json` });
  document.body.append(link);
  link.click();
  link.remove();
}
