function submitButton(key) { return button(["Submit ", el("kbd", {}, key)], submit, { class: "first", "data-key": "submit", disabled: isFrozen() }); }
function undoButton(item) { return button("Take back the last change", () => send("undo"), { "data-key": "undo", disabled: isFrozen() || !item.can_undo }); }
function picture(item) {
  if (item.loop) return el("p", { class: "bad" }, `What you wrote forms a loop: ${item.loop.join(" \u2192 ")}. A graph has none.`);
  if (!item.picture) return null;
  const box = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Drawing of your graph" });
  box.innerHTML = item.picture; // drawn by the server, every name escaped
  return box;
}
const CLASSES = { earned: "\u2713 earned: decided and right", lucky: "\u2248 lucky: undecided and right", short: "\u25cb short: undecided and wrong", missed: "\u2717 missed: decided and wrong" };
const worth = (right, kind) => kind ? CLASSES[kind] : right ? "\u2713 right" : "\u2717 not right";
const crcTable = [...Array(256).keys()].map((byte) => { for (let bit = 0; bit < 8; bit += 1) byte = byte & 1 ? (byte >>> 1) ^ 0xedb88320 : byte >>> 1; return byte >>> 0; });
const crc32 = (text) => ([...new TextEncoder().encode(text)].reduce((crc, byte) => crcTable[(crc ^ byte) & 255] ^ (crc >>> 8), -1) ^ -1) >>> 0;
function enter() {
  const isListed = EMBEDDED.plan ? EMBEDDED.plan.names !== null : EMBEDDED.listed;
  let offered = EMBEDDED.offered || (isListed ? "" : `p-${tab.slice(0, 6)}`);
  const id = el("input", { type: "text", id: "participant", value: EMBEDDED.participant || offered, "data-key": "participant", autocomplete: "off" });
  const go = async () => {
    const name = id.value.trim();
    if (!name) { show("please enter the id that you were given"); return; }
    if (EMBEDDED.plan) {
      if (isListed && !EMBEDDED.plan.names.includes(crc32(name))) { show(`${name} does not take part in this study; enter the id that you were given`); return; }
      show("");
      saved.participant = name; keep(); render(localState()); return;
    }
    const answer = await request("enter", { participant: name, offered: isListed && name === offered });
    if (answer.status === 200) { location.href = answer.data.address; return; }
    show(answer.data.problem);
    if (answer.data.offered !== undefined) id.value = offered = answer.data.offered;
  };
  id.addEventListener("keydown", (e) => { if (e.key === "Enter") go(); });
  replaceScreen(el("h1", {}, "Before you begin"), el("p", {}, EMBEDDED.participant || offered ? "Enter the id that you were given, or leave the one below. No name." : "Enter the id that you were given. No name."),
    el("div", { class: "row" }, el("label", { for: "participant" }, "Participant id"), id, button("Go on", go, { class: "first", "data-key": "enter" })));
}
function start() {
  const agreed = el("input", { type: "checkbox", "data-key": "agreed" });
  const consent = el("div", { class: "consent", tabindex: 0, role: "region", "aria-label": "Consent" });
  consent.innerHTML = state.consent; // its raw HTML is escaped, links and pictures are text
  return [
    el("h1", {}, "Before you begin"), el("p", { class: "reason" }, state.task),
    el("section", { class: "panel" }, el("h2", {}, "What is kept"), state.privacy.map((text) => el("p", {}, text)), el("p", {}, "You can stop at any time and go on later at this address; what you did until then stays there.")),
    state.consent ? consent : null,
    el("p", {}, "Participant id: ", el("b", { class: "ids" }, state.participant)),
    state.consent ? el("p", {}, el("label", {}, agreed, " I have read this and agree.")) : null,
    el("p", { class: "row" }, button("Begin", () => send("begin", { agreed: agreed.checked }), { class: "first", "data-key": "begin" }), state.practice ? el("a", { class: "second", href: state.practice, "data-key": "practice" }, "Practice first") : null, state.practice ? el("span", { class: "soft" }, "Practice is not recorded.") : null),
    el("p", { class: "note" }, "Everything works with the keyboard: Tab to move, Enter to act, ? for keys. Closing the window loses nothing."),
  ];
}
function questions() {
  const answers = {};
  const asked = state.questions.map((q) => {
    const name = `question-${q.id}`;
    const radios = (options) => options.map(([value, text]) => el("label", {}, el("input", { type: "radio", name, "data-key": `${name}-${value}`, onchange: () => { answers[q.id] = value; } }), ` ${text}`));
    let control;
    if (q.kind === "likert") control = [q.low ? el("span", { class: "soft" }, q.low) : null, radios([...Array(q.points).keys()].map((k) => [k + 1, String(k + 1)])), q.high ? el("span", { class: "soft" }, q.high) : null];
    else if (q.kind === "choice") control = radios(q.options.map((text) => [text, text]));
    else if (q.kind === "number") control = el("input", { type: "number", step: "any", "aria-label": q.text, "data-key": name, onchange: (e) => { answers[q.id] = e.target.value === "" ? "" : Number(e.target.value); } });
    else control = el("textarea", { "aria-label": q.text, "data-key": name, onchange: (e) => { answers[q.id] = e.target.value; } });
    return el("fieldset", {}, el("legend", {}, q.text + (q.optional ? " (optional)" : "")), el("div", { class: "row" }, control));
  });
  return [el("h1", {}, state.heading), asked, button("Go on", () => send("answers", { name: state.name, answers }), { class: "first", "data-key": "go-on" })];
}
function ended() {
  const verdict = state.verdict;
  const text = verdict ? `${verdict.right ? "\u2713" : verdict.attribution?.kind === "short" ? "\u25cb" : "\u2717"} ${verdict.text}` : "Your answer is recorded.";
  const next = button("Go on", reload, { class: "first", "data-key": "next" });
  return el("section", { class: "ended", "aria-label": "Item ended" }, el("h2", {}, text), next);
}
function item() {
  const it = state.item, view = views[it.view.view];
  const facts = el("details", { open: !it.steps.length && !Object.keys(it.draft).length && it.view.view !== "program" && (it.view.rules ? false : true) }, el("summary", {}, "What is asked"), el("div", { class: "facts" }, (it.view.rules || it.opening.split("\n\n")).map((part) => /\S {2,}\S/.test(part) ? el("pre", { tabindex: 0, role: "region", "aria-label": "Table" }, part) : el("p", {}, part.replace(/\n(?=[a-z])/g, " ")))));
  const progress = state.items > 1 ? el("progress", { max: state.items, value: state.number, "aria-label": `item ${state.number} of ${state.items}` }) : null;
  return [
    el("h1", {}, it.kind), state.study ? el("p", {}, "This is practice: nothing is recorded. ", el("a", { href: state.study, "data-key": "leave" }, "Go to the study")) : null, el("div", { class: "progress" }, progress, state.items > 1 ? el("span", {}, `item ${state.number} of ${state.items}`) : null),
    (it.view.brief || []).map((sentence) => el("p", { class: "reason" }, sentence)), it.view.view === "program" ? null : facts, it.aid ? el("p", { class: "note", "data-key": "aid" }, it.aid) : null, view.render(it), it.closed ? ended() : el("p", {}, button("I cannot tell", () => confirm("End this item without an answer?") && send("quit"), { class: "plain", "data-key": "quit", disabled: isFrozen() })),
  ];
}
function end() {
  const rows = state.verdicts;
  if (EMBEDDED.plan) return [el("h1", {}, "Done. Please save your answers"), el("p", {}, "They are in this browser alone. Save the file and hand it in."), button("Save my answers", download, { class: "first", "data-key": "save" })];
  const study = state.study ? el("p", {}, el("a", { class: "first", href: state.study, "data-key": "leave" }, "Go to the study")) : null;
  if (study && !rows.length) return [el("h1", {}, "That was practice"), study];
  if (!rows.length) return [el("h1", {}, "Done. Thank you."), el("p", {}, "Your answers are recorded; you can close this window.")];
  const right = rows.filter((row) => row.right).length, kindOf = (row) => row.class || (row.right ? "right" : "wrong");
  const count = (kind) => rows.filter((row) => kindOf(row) === kind).length, kinds = ["earned", "lucky", "right", "short", "missed", "wrong"].filter(count);
  const number = (text) => ({ text, number: true }), heads = ["#", "Kind", "Item", "You", number("Fits the evidence"), number("Moves"), number("Ideal")];
  const cell = (text) => el("td", { class: "number" }, String(text)), plain = (child) => el("td", {}, child);
  const cells = rows.map((row, k) => [k + 1, plain(row.kind), el("td", { class: "ids" }, row.item), plain(el("span", { class: `worth ${kindOf(row)}` }, worth(row.right, row.class).split(":")[0])), cell(row.left ? `${row.left.length > 15 ? `about 10^${row.left.length - 1}` : Number(row.left).toLocaleString("en")} left` : "\u2013"), cell(row.moves ?? "\u2013"), cell(row.ideal ?? "\u2013")]);
  return [el("h1", {}, `${state.study ? "Practice" : "Done"}: ${right} of ${rows.length} right${rows.some((r) => r.class) ? `, ${count("earned")} of them earned` : ""}`),
    el("p", { class: "classes", role: "img", "aria-label": kinds.map((kind) => `${count(kind)} ${kind}`).join(", ") }, kinds.map((kind) => el("span", { class: kind, style: `flex: ${count(kind)}` }))),
    el("ul", { class: "legend" }, Object.entries(CLASSES).map(([kind, text]) => el("li", {}, el("span", { class: "classes key", "aria-hidden": "true" }, el("span", { class: kind })), ` ${text}`)), ["right", "wrong"].filter(count).map((kind) => el("li", {}, el("span", { class: "classes key", "aria-hidden": "true" }, el("span", { class: kind })), ` ${kind === "right" ? "\u2713" : "\u2717"} ${kind}: what the evidence had decided is not counted`))),
    el("p", {}, "Lucky: your evidence still allowed other answers. The ideal learner saw only what it asked for, and chose its own moves where there are any."), table("Your answers", heads, cells),
    el("p", {}, el("a", { class: "first", href: "review", "data-key": "review" }, "Step through your items beside the ideal learner")), study];
}
function render(next) {
  const before = state;
  state = { writer: true, ...next };
  const phase = { start, questions, item, end }[state.phase];
  replaceScreen(...phase().flat(Infinity).filter((child) => child));
  if (before?.phase !== state.phase || before?.item?.id !== state.item?.id) { say(""); if (before) document.getElementById("main").focus(); window.scrollTo(0, 0); }
  const news = state.item?.last;
  if (news && before?.item?.moves !== state.item.moves) say(state.item.closed ? "The item has ended." : news);
  else if (state.item?.closed && !before?.item?.closed) say("The item has ended.");
  if (!state.writer) banner.replaceChildren("Another window is in use; this one only shows. ", button("Go on here", () => reload(null, true)));
}
async function reload(_, take) {
  const answer = await request(`state?tab=${tab}${take ? "&take=1" : ""}`);
  if (answer.status !== 200) { show(answer.data.problem || "this address is not known"); return; }
  if (answer.data.writer) banner.textContent = "";
  show("");
  render(answer.data);
}
addEventListener("keydown", (event) => {
  const target = event.target, it = state?.item;
  if (!it || event.metaKey || event.altKey) return;
  if (event.ctrlKey) { if (event.key === "Enter" && !isFrozen()) { event.preventDefault(); submit(); } return; }
  if (target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement || (target instanceof HTMLInputElement && !["checkbox", "radio"].includes(target.type))) return;
  if (event.key.length === 1 && views[it.view.view].key?.(event, it)) event.preventDefault();
});
(async () => {
  if (EMBEDDED.plan) {
    try { Object.assign(saved, JSON.parse(localStorage.getItem(storageKey()) || "{}")); } catch { /* a new start */ }
    if (saved.participant) render(localState()); else enter();
    return;
  }
  const first = await request(`state?tab=${tab}`);
  if (first.status === 404) enter();
  else if (first.status !== 200) show(first.data.problem);
  else render(first.data);
  setInterval(() => { if (state?.writer && !waiting && state.phase !== "end") request(`state?tab=${tab}`).then((a) => { if (a.status === 200 && !a.data.writer) { state.writer = false; render({ ...state, writer: false }); } }); }, 5000);
})();
