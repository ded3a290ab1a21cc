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
const worth = (right, kind) => kind ? CLASSES[kind] : right === null ? "\u2013 not judged" : right ? "\u2713 right" : "\u2717 not right";
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
  replaceScreen(el("h1", {}, "Before you begin"), languageChoice(enter), el("p", {}, EMBEDDED.participant || offered ? "Enter the id that you were given, or leave the one below. No name." : "Enter the id that you were given. No name."),
    el("div", { class: "row" }, el("label", { for: "participant" }, "Participant id"), id, button("Go on", go, { class: "first", "data-key": "enter" })));
}
function start() {
  const agreed = el("input", { type: "checkbox", "data-key": "agreed" });
  const consent = el("div", { class: "consent", tabindex: 0, role: "region", "aria-label": "Consent" });
  consent.innerHTML = state.consent; // its raw HTML is escaped, links and pictures are text
  return [
    el("h1", {}, "Before you begin"), languageChoice(reload), el("p", { class: "reason" }, state.task), state.limit ? el("p", { class: "reason" }, state.limit) : null,
    el("section", { class: "panel" }, el("h2", {}, "What is kept"), state.privacy.map((text) => el("p", {}, text)), el("p", {}, state.limit ? "You can stop at any time; what you did until then is kept. The time goes on, and until it is up you can go on at this address." : "You can stop at any time and go on later at this address; what you did until then stays there.")),
    state.consent ? consent : null,
    el("p", {}, "Participant id: ", el("b", { class: "ids", translate: "no" }, state.participant)),
    state.consent ? el("p", {}, el("label", {}, agreed, " I have read this and agree.")) : null,
    el("p", { class: "row" }, button("Begin", () => send("begin", { agreed: agreed.checked, lang }), { class: "first", "data-key": "begin" }), state.practice ? el("a", { class: "second", href: state.practice, "data-key": "practice" }, "Practice first") : null, state.practice ? el("span", { class: "soft" }, "Practice is not recorded.") : null),
    el("p", { class: "note" }, "Everything works with the keyboard: Tab to move, Enter to act, ? for keys.", state.limit ? null : " Closing the window loses nothing."),
  ];
}
function progress() {
  if (!(state.steps > 1)) return null;
  const isAll = state.steps === state.items; // no pages of questions
  const text = isAll ? `item ${state.number} of ${state.items}` : `step ${state.step} of ${state.steps}`;
  return el("div", { class: "progress" }, el("progress", { max: state.steps, value: state.step, "aria-label": text }), el("span", {}, text));
}
// where a limit may end the page, answers go to the server as they are given; nothing is rendered anew for that
let answersTimer = 0, isKept = true;
function keepAnswers(delay) {
  if (state.is_timed) { isKept = false; clearTimeout(answersTimer); answersTimer = setTimeout(sendAnswers, delay); }
}
async function sendAnswers() {
  if (waiting || isKept || state.phase !== "questions") return;
  isKept = true;
  const read = { seconds: Math.round(performance.now() - clock.since) / 1000, interruptions: [...clock.causes] }, name = state.name;
  const answer = await request("draft", { name, answers: state.answers, clock: read });
  if (waiting || state.name !== name) return;
  if (answer.status === 200) restartClock();
  if (answer.data.phase && answer.data.name !== name) render(answer.data);
}
function questions() {
  const answers = state.answers ||= {}, boxes = {};
  const asked = state.questions.map((q) => {
    const name = `question-${q.id}`, isFrozenPage = !state.writer;
    const radios = (options) => options.map(([value, text]) => el("label", {}, el("input", { type: "radio", name, "data-key": `${name}-${value}`, checked: answers[q.id] === value, disabled: isFrozenPage, onchange: () => { answers[q.id] = value; keepAnswers(0); } }), " ", el("span", { translate: "no" }, text)));
    let control;
    if (q.kind === "likert") control = [q.low ? el("span", { class: "soft", translate: "no" }, q.low) : null, radios([...Array(q.points).keys()].map((k) => [k + 1, String(k + 1)])), q.high ? el("span", { class: "soft", translate: "no" }, q.high) : null];
    else if (q.kind === "choice") control = radios(q.options.map((text, k) => [text, q.labels?.[k] ?? text]));
    else if (q.kind === "number") {
      boxes[q.id] = el("input", { type: "number", step: q.whole ? 1 : "any", min: q.min, max: q.max, "aria-label": q.text, translate: "no", "data-key": name, value: answers[q.id], disabled: isFrozenPage, oninput: (e) => { answers[q.id] = e.target.value === "" ? "" : Number(e.target.value); keepAnswers(500); } });
      control = [boxes[q.id], el("span", { class: "soft" }, q.values)];
    } else control = el("textarea", { "aria-label": q.text, translate: "no", "data-key": name, maxlength: 4000, disabled: isFrozenPage, oninput: (e) => { answers[q.id] = e.target.value; keepAnswers(500); } }, answers[q.id]);
    return el("fieldset", {}, el("legend", {}, el("span", { translate: "no" }, q.text), q.optional ? " (optional)" : null), el("div", { class: "row" }, control));
  });
  const go = () => {
    const wrong = state.questions.find((q) => boxes[q.id] && !boxes[q.id].checkValidity());
    if (!wrong) return send("answers", { name: state.name, answers, tries: state.tries });
    show(`${wrong.text.replace(/[?.:! ]+$/, "")}: ${wrong.values}`);
    boxes[wrong.id].setAttribute("aria-invalid", "true");
    return boxes[wrong.id].focus();
  };
  const text = state.instructions ? el("section", { class: "instructions", "aria-label": "Instructions" }) : null;
  if (text) text.innerHTML = state.instructions; // as a text of consent
  return [el("h1", { translate: state.heading === "Instructions" ? null : "no" }, state.heading), progress(), lateNote(), countdown("left", state.seconds_left, state.name), studyCountdown(), text, asked, button("Go on", go, { class: "first", "data-key": "go-on", disabled: !state.writer })];
}
function ended() {
  const verdict = state.verdict;
  const text = verdict ? `${verdict.right === null ? "\u2013" : verdict.right ? "\u2713" : verdict.attribution?.kind === "short" ? "\u25cb" : "\u2717"} ${verdict.text}` : state.item.late ? "The time is up. The item has ended without an answer." : "Your answer is recorded.";
  const next = button("Go on", reload, { class: "first", "data-key": "next" });
  return el("section", { class: "ended", "aria-label": "Item ended" }, el("h2", {}, text), next);
}
const studyCountdown = () => countdown("study-left", state.study_seconds_left, "study");
const LATE = "The time of the page before is up. What you had answered until then is recorded.";
const lateNote = () => state.was_late ? el("p", { class: "callout" }, LATE) : null;
function item() {
  const it = state.item, view = views[it.view.view];
  const facts = el("details", { open: !it.steps.length && !Object.keys(it.draft).length && it.view.view !== "program" && (it.view.rules ? false : true) }, el("summary", {}, "What is asked"), el("div", { class: "facts" }, (it.view.rules || it.opening.split("\n\n")).map((part) => /\S {2,}\S/.test(part) ? el("pre", { tabindex: 0, role: "region", "aria-label": "Table" }, part) : el("p", {}, part.replace(/\n(?=[a-z](?:(?!->|-\||: ).)*$)/gm, " ")))));
  return [
    el("h1", {}, it.kind), state.study ? el("p", {}, "This is practice: nothing is recorded. ", el("a", { href: state.study, "data-key": "leave" }, "Go to the study")) : null, progress(), lateNote(), countdown("left", it.seconds_left, it.id), studyCountdown(),
    (it.view.brief || []).map((sentence) => el("p", { class: "reason" }, sentence)), it.view.view === "program" ? null : facts, it.aid ? el("p", { class: "note", "data-key": "aid" }, it.aid) : null, view.render(it), it.closed ? ended() : el("p", {}, button("I cannot tell", () => confirm(t("End this item without an answer?")) && send("quit"), { class: "plain", "data-key": "quit", disabled: isFrozen() })),
  ];
}
// proof of having finished: the server sends it with the end alone
function completion() {
  const { code, url } = state.completion || {};
  if (code) {
    const copy = () => navigator.clipboard?.writeText(code).then(() => say("The code is copied."), () => say("Please copy the code by hand."));
    return el("section", { class: "panel", "aria-label": "Completion code" }, el("p", {}, "Your completion code. Enter it at the site that sent you here:"), el("p", { class: "row" }, el("b", { class: "code", translate: "no" }, code), navigator.clipboard ? button("Copy the code", copy, { "data-key": "copy" }) : null));
  }
  if (!url) return null;
  const isTimed = leaveAt && leaveAt !== Infinity;
  return el("section", { class: "panel", "aria-label": "Finish" }, el("p", {}, `One step is left: go back to the site that sent you here. It then knows that ${state.screened_out ? "the study ended here for you" : "you finished"}.`),
    isTimed ? el("p", { id: "leaving", role: "timer" }, leavingText()) : null,
    el("p", { class: "row" }, el("a", { class: "first", href: url, "data-key": "finish" }, "Finish and go back"), isTimed ? button("Stay here", () => { leaveAt = Infinity; say(""); render(state); }, { "data-key": "stay" }) : null));
}
// the page goes back by itself where nothing is left to read on it; whoever needs longer stops that
const LEAVE_SECONDS = 15;
let leaveAt = 0; // by the clock of this page; 0: not begun, Infinity: stopped
const leavingText = () => {
  const seconds = Math.max(0, Math.ceil((leaveAt - performance.now()) / 1000));
  return `This page goes back by itself in ${seconds} second${seconds === 1 ? "" : "s"}.`;
};
function leaveSoon() {
  if (leaveAt || state.phase !== "end" || !state.completion?.url || state.verdicts.length || !state.writer) return;
  leaveAt = performance.now() + 1000 * LEAVE_SECONDS;
  render(state);
  say("This page soon goes back by itself; Stay here stops that.");
  const tick = setInterval(() => {
    if (leaveAt === Infinity || state.phase !== "end") { clearInterval(tick); return; }
    const box = document.getElementById("leaving");
    if (box) box.textContent = t(leavingText());
    if (performance.now() >= leaveAt) { clearInterval(tick); leaveAt = Infinity; location.assign(state.completion.url); }
  }, 250);
}
const recorded = () => state.completion ? "What you did is recorded." : "What you did is recorded; you can close this window.";
function end() {
  const rows = state.verdicts;
  if (EMBEDDED.plan) return [el("h1", {}, "Done. Please save your answers"), el("p", {}, "They are in this browser alone. Save the file and hand it in."), button("Save my answers", download, { class: "first", "data-key": "save" })];
  if (state.screened_out && state.late) return [el("h1", {}, "The study ends here"), el("p", {}, `The time of the study is up, before the questions about the instructions were answered rightly. ${recorded()}`), completion()];
  if (state.screened_out) return [el("h1", {}, "The study ends here"), el("p", {}, `The questions about the instructions were not answered rightly. ${recorded()}`), completion()];
  const study = state.study ? el("p", {}, el("a", { class: "first", href: state.study, "data-key": "leave" }, "Go to the study")) : null;
  if (study && !rows.length) return [el("h1", {}, "That was practice"), study];
  const proof = completion();
  if (!rows.length) return [el("h1", {}, state.late ? "The time of the study is up. Thank you." : "Done. Thank you."), lateNote(), el("p", {}, proof ? "Your answers are recorded." : "Your answers are recorded; you can close this window."), proof];
  const right = rows.filter((row) => row.right).length, judged = rows.filter((row) => row.right !== null).length, kindOf = (row) => row.class || (row.right === null ? "unjudged" : row.right ? "right" : "wrong");
  const count = (kind) => rows.filter((row) => kindOf(row) === kind).length, kinds = ["earned", "lucky", "right", "short", "missed", "wrong", "unjudged"].filter(count);
  const number = (text) => ({ text, number: true }), heads = ["#", "Kind", "Item", "You", number("Fits the evidence"), number("Moves"), number("Ideal")];
  const cell = (text) => el("td", { class: "number" }, String(text)), plain = (child) => el("td", {}, child);
  const cells = rows.map((row, k) => [k + 1, plain(row.kind), el("td", { class: "ids" }, row.item), plain(el("span", { class: `worth ${kindOf(row)}` }, worth(row.right, row.class).split(":")[0])), cell(row.left ? `${row.left.length > 15 ? `about 10^${row.left.length - 1}` : Number(row.left).toLocaleString("en")} left` : "\u2013"), cell(row.moves ?? "\u2013"), cell(row.ideal ?? "\u2013")]);
  return [proof, state.late ? el("p", { class: "callout" }, "The time of the study is up. Thank you.") : lateNote(), el("h1", {}, `${state.study ? "Practice" : "Done"}: ${judged ? `${right} of ${judged} right` : "nothing is held out, so nothing is judged"}${rows.some((r) => r.class) ? `, ${count("earned")} of them earned` : ""}`),
    el("p", { class: "classes", role: "img", "aria-label": kinds.map((kind) => `${count(kind)} ${kind}`).join(", ") }, kinds.map((kind) => el("span", { class: kind, style: `flex: ${count(kind)}` }))),
    el("ul", { class: "legend" }, Object.entries(CLASSES).map(([kind, text]) => el("li", {}, el("span", { class: "classes key", "aria-hidden": "true" }, el("span", { class: kind })), ` ${text}`)), ["right", "wrong"].filter(count).map((kind) => el("li", {}, el("span", { class: "classes key", "aria-hidden": "true" }, el("span", { class: kind })), ` ${kind === "right" ? "\u2713" : "\u2717"} ${kind}: what the evidence had decided is not counted`))),
    el("p", {}, "Lucky: your evidence still allowed other answers. The ideal learner saw only what it asked for, and chose its own moves where there are any."), table("Your answers", heads, cells),
    el("p", {}, el("a", { class: "first", href: "review", "data-key": "review" }, "Step through your items beside the ideal learner")), study];
}
function render(next) {
  const before = state;
  state = { writer: true, ...next, is_timed: next.answers !== undefined };
  if (state.phase === "questions" && before?.name === state.name) state.answers = { ...state.answers, ...before.answers };
  if (state.lang && state.lang !== lang) setLanguage(state.lang);
  const phase = { start, questions, item, end }[state.phase];
  replaceScreen(...phase().flat(Infinity).filter((child) => child));
  if (before?.phase !== state.phase || before?.item?.id !== state.item?.id || before?.name !== state.name) { restartClock(); say(""); if (before) document.getElementById("main").focus(); window.scrollTo(0, 0); }
  const news = state.item?.last;
  if (news && before?.item?.moves !== state.item.moves) say(state.item.closed ? "The item has ended." : news);
  else if (state.item?.closed && !before?.item?.closed) say("The item has ended.");
  if (state.was_late) say(LATE);
  showStale();
  leaveSoon();
}
// a window that another one has taken over: what it shows is old, and it says so
const windows = "BroadcastChannel" in window && !EMBEDDED.plan ? new BroadcastChannel(`calibrant ${location.pathname}`) : null;
function showStale() {
  screen_.inert = !state.writer;
  screen_.classList.toggle("stale", !state.writer);
  if (state.writer) { document.title = titleText(state.title); return; }
  show("");
  document.title = `${t("Out of date:")} ${titleText(state.title)}`;
  banner.replaceChildren(el("div", { class: "callout" }, el("h1", {}, "This window is out of date"), `You went on in another window; what stands here is from ${new Date().toLocaleTimeString(lang, { hour: "2-digit", minute: "2-digit" })} and does nothing. `, button("Go on here", () => reload(null, true), { "data-key": "take" })));
}
function loseWriter() {
  if (!state?.writer) return;
  state.writer = false;
  render({ ...state, writer: false });
}
if (windows) windows.onmessage = (message) => { if (message.data !== tab) loseWriter(); };

async function reload(_, take) {
  const answer = await request(`state?tab=${tab}&lang=${lang}${take ? "&take=1" : ""}`);
  if (answer.status !== 200) { show(answer.data.problem || "this address is not known"); return; }
  if (answer.data.writer) { banner.textContent = ""; windows?.postMessage(tab); }
  show("");
  render(answer.data);
}
addEventListener("keydown", (event) => {
  const target = event.target, it = state?.item;
  if (!it || event.metaKey || event.altKey) return;
  if (event.ctrlKey) { if (event.key === "Enter" && !isFrozen()) { event.preventDefault(); submitByKey(event); } return; }
  if (target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement || (target instanceof HTMLInputElement && !["checkbox", "radio"].includes(target.type))) return;
  if (event.key.length === 1 && views[it.view.view].key?.(event, it)) event.preventDefault();
});
(async () => {
  if (EMBEDDED.plan) {
    try { Object.assign(saved, JSON.parse(localStorage.getItem(storageKey()) || "{}")); } catch { /* a new start */ }
    if (saved.participant) render(localState()); else enter();
    return;
  }
  const first = await request(`state?tab=${tab}&lang=${lang}&take=1`); // the window that was opened last
  if (first.status === 404) enter();
  else if (first.status !== 200) show(first.data.problem);
  else {
    render(first.data);
    if (state.phase !== "start") clock.causes.add("reload");
    if (state.writer) windows?.postMessage(tab);
  }
  setInterval(() => { if (state?.writer && !waiting && state.phase !== "end") request(`alive?tab=${tab}`).then((a) => { if (a.status === 200 && !a.data.writer) loseWriter(); }); }, 5000);
})();
