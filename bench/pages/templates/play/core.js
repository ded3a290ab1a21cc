const views = {};
const screen_ = document.getElementById("screen"), news = document.getElementById("news");
const problemBox = document.getElementById("problem"), banner = document.getElementById("banner");
let state = null, waiting = false;
const tab = (() => {
  const fresh = () => [...crypto.getRandomValues(new Uint8Array(12))].map((b) => b.toString(16).padStart(2, "0")).join("");
  try { const old = sessionStorage.getItem("calibrant-tab") || fresh(); sessionStorage.setItem("calibrant-tab", old); return old; } catch { return fresh(); }
})();
// large type and high contrast, kept in this browser
const display = (() => { try { return JSON.parse(localStorage.getItem("calibrant-display")) || {}; } catch { return {}; } })();
for (const name of ["large", "contrast"]) {
  const box = document.getElementById(name);
  const apply = () => { if (name === "large") document.body.classList.toggle("large", box.checked); else document.documentElement.dataset.contrast = box.checked ? "high" : ""; };
  box.checked = display[name] ?? (name === "contrast" && matchMedia("(prefers-contrast: more)").matches);
  box.addEventListener("change", () => { display[name] = box.checked; try { localStorage.setItem("calibrant-display", JSON.stringify(display)); } catch { /* for this page alone */ } apply(); });
  apply();
}
// the interface in another language: a text is looked up whole, by pattern, then sentence by sentence. In a pattern
// {n}, {m} and {k} are numbers, {name}, {first} and {second} have no blanks, another hole is any text; {hole:t} in its
// translation is translated itself
const langs = EMBEDDED.langs || ["en"], untranslated = new Set();
let lang = (() => { try { return localStorage.getItem("calibrant-lang"); } catch { return null; } })();
if (!langs.includes(lang)) lang = langs[0];
const catalogues = Object.fromEntries(Object.entries(EMBEDDED.texts || {}).map(([name, texts]) => {
  const patterns = Object.keys(texts).filter((key) => /\{\w+\}/.test(key)).map((key) => {
    const source = key.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{(\w+)\}/g, (_, hole) => `(?<${hole}>${/^[nmk]$/.test(hole) ? "[\\d,.]*\\d" : /^(name|first|second)$/.test(hole) ? "\\S+" : "[^]+?"})`);
    return [new RegExp(`^${source}$`), texts[key], key.replace(/\{\w+\}/g, "").length];
  });
  return [name, { texts, patterns: patterns.sort((a, b) => b[2] - a[2]), cache: new Map() }];
}));
function lookUp(catalogue, text) {
  if (Object.hasOwn(catalogue.texts, text)) return catalogue.texts[text];
  for (const [pattern, translation] of catalogue.patterns) {
    const match = pattern.exec(text);
    if (match) return translation.replace(/\{(\w+)(:t)?\}/g, (_, hole, nested) => nested ? lookUp(catalogue, match.groups[hole]) ?? match.groups[hole].split(", ").map(t).join(", ") : match.groups[hole]);
  }
  return null;
}
function t(text) {
  const catalogue = catalogues[lang], core = String(text).trim();
  if (!catalogue || !/\p{L}{2}/u.test(core)) return text;
  if (!catalogue.cache.has(core)) {
    let translation = lookUp(catalogue, core);
    for (const border of [/(\n+)/, /((?<=[.;!?])\s+)/, /((?<=:)\s+)/]) {
      if (translation !== null || !border.test(core)) continue;
      translation = core.split(border).map((part, k) => k % 2 ? part : t(part)).join("");
    }
    if (translation === null) untranslated.add(core);
    catalogue.cache.set(core, translation ?? core);
  }
  return String(text).replace(core, () => catalogue.cache.get(core));
}
// the title of the study is its own: only a study's translation stands in its place
const titleText = (title) => Object.hasOwn(catalogues[lang]?.texts || {}, title) ? catalogues[lang].texts[title] : title;
const crumb = document.querySelector(".crumbs .here"), crumbTitle = crumb?.textContent;
const chrome = [];
function setLanguage(name) {
  lang = name;
  document.documentElement.lang = name;
  try { localStorage.setItem("calibrant-lang", name); } catch { /* for this page alone */ }
  if (!chrome.length) {
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) if (!walk.currentNode.parentElement.closest("script, noscript, #screen, #banner, #problem, #news, .crumbs, .foot")) chrome.push([walk.currentNode, "data", walk.currentNode.data]);
    for (const element of document.querySelectorAll("[aria-label]")) if (!element.closest("#screen")) chrome.push([element, "ariaLabel", element.ariaLabel]);
  }
  for (const [node, property, text] of chrome) node[property] = t(text);
  if (crumb) crumb.textContent = titleText(crumbTitle);
}
setLanguage(lang);
function languageChoice(again) {
  if (langs.length < 2) return null;
  const names = EMBEDDED.names || {};
  return el("p", { class: "row" }, el("label", { lang: "en" }, "Language ", el("select", { "data-key": "lang", onchange: (e) => { setLanguage(e.target.value); again(); } }, langs.map((name) => el("option", { value: name, selected: name === lang, translate: "no" }, names[name] || name)))));
}
function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag), label = attributes.translate === "no" && /input|textarea/.test(tag) ? String : t; // a study's own
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("aria-") && typeof value === "boolean") element.setAttribute(name, String(value)); // "" is neither
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, /^(aria-label|title|placeholder)$/.test(name) ? label(value) : String(value));
  }
  const read = attributes.translate === "no" || tag === "pre" ? (text) => text : t; // data stays as it is
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined) element.append(child instanceof Node ? child : read(child));
  return element;
}
const button = (text, press, attributes = {}) => el("button", { type: "button", onclick: press, ...attributes }, text);
const isFrozen = () => waiting || !state.writer || (state.item && state.item.closed);
function table(caption, heads, rows) {
  const head = el("tr", {}, heads.map((h) => el("th", { scope: "col", class: h.number ? "number" : "" }, h.text ?? h)));
  const body = rows.map((cells) => el("tr", {}, cells.map((c, k) => c instanceof Node ? c : el(k ? "td" : "th", k ? { class: "number" } : { scope: "row" }, String(c)))));
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, el("table", {}, el("caption", {}, caption), el("thead", {}, head), el("tbody", {}, body)));
}
// seconds since the last event by the clock of this page, and what interrupted them
const clock = { since: performance.now(), causes: new Set(), beat: Date.now() };
setInterval(() => {
  if (document.hidden) clock.causes.add("hidden"); else if (Date.now() - clock.beat > 5000) clock.causes.add("sleep");
  clock.beat = Date.now();
}, 1000);
document.addEventListener("visibilitychange", () => { clock.beat = Date.now(); clock.causes.add("hidden"); });
function restartClock() { clock.since = performance.now(); clock.causes.clear(); }
function show(problem) { if (problem) say(""); problemBox.textContent = t(problem || ""); problemBox.hidden = !problem; }
function say(text) { news.textContent = t(text); }
// a request is sent again until the server answers: moves carry their number, so none is made twice
async function request(path, body) {
  if (EMBEDDED.plan) return localRequest(path, body);
  for (let delay = 300; ; delay = Math.min(delay * 2, 5000)) {
    try {
      const options = body ? { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ ...body, tab }) } : {};
      const answer = await fetch(path, options);
      banner.textContent = "";
      return { status: answer.status, data: await answer.json() };
    } catch {
      clock.causes.add("resent");
      banner.textContent = t("The server does not answer. What you did is kept here and is sent again.");
      await new Promise((done) => setTimeout(done, delay));
    }
  }
}
async function send(verb, body = {}) {
  if (waiting) return false;
  waiting = true;
  const item = state?.item;
  const read = { seconds: Math.round(performance.now() - clock.since) / 1000, interruptions: [...clock.causes] };
  const sent = { item: item?.id, moves: item?.moves, ...body, clock: read };
  let answer = await request(verb, sent);
  if (answer.status === 409 && answer.data.item?.moves === sent.moves && answer.data.item?.id === sent.item) answer = await request(verb, sent);
  waiting = false;
  if (answer.status === 422 || !answer.data.phase) {
    if (answer.data.tries !== undefined) state.tries = answer.data.tries;
    show(answer.data.problem);
    return false;
  }
  const isSame = verb === "draft" && JSON.stringify(answer.data.item?.draft) === JSON.stringify(item?.draft);
  if (answer.status === 200 && !isSame) restartClock(); // an equal draft is no event
  show(answer.status === 200 ? "" : answer.data.problem);
  render(answer.data);
  return answer.status === 200;
}
let draftTimer = 0, pendingDraft = null;
function writeDraft(draft, delay = 0) {
  pendingDraft = draft;
  clearTimeout(draftTimer);
  draftTimer = setTimeout(flushDraft, delay);
}
async function flushDraft() {
  clearTimeout(draftTimer);
  while (waiting) await new Promise((done) => setTimeout(done, 20));
  if (pendingDraft === null) return true;
  const draft = pendingDraft;
  pendingDraft = null;
  return send("draft", { draft });
}
async function submit() { if (await flushDraft()) await send("submit"); }
// a key alone ends no item: it goes to the button, and says what to press
function submitByKey(event) {
  const submitter = screen_.querySelector('[data-key="submit"]');
  if (!submitter || submitter.disabled || event.repeat) return;
  if (document.activeElement === submitter && event.ctrlKey) { submit(); return; }
  submitter.focus();
  show("");
  say("To submit your answer, press Enter. It ends the item.");
}
// time that is left of a stop and of the study, counted down between answers of the server
const timers = {
  left: { label: "Time left:", spoken: (n) => `${n} seconds left`, deadline: Infinity, warned: 0, of: "" },
  "study-left": { label: "Time left of the study:", spoken: (n) => `${n} seconds of the study left`, deadline: Infinity, warned: 0, of: "" },
};
const timeLeft = (timer) => Math.max(0, Math.ceil((timer.deadline - performance.now()) / 1000));
const clockText = (seconds) => `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
function countdown(id, seconds, of) {
  const timer = timers[id];
  timer.deadline = seconds === undefined ? Infinity : performance.now() + 1000 * seconds;
  if (seconds === undefined || (id === "left" && state.item?.closed)) return null;
  if (of !== timer.of) Object.assign(timer, { of, warned: seconds });
  return el("p", { class: "limit" }, timer.label, " ", el("b", { id, role: "timer" }, clockText(timeLeft(timer))));
}
setInterval(() => {
  if (!state?.writer) return;
  for (const [id, timer] of Object.entries(timers)) {
    const box = document.getElementById(id);
    if (!box) continue;
    const seconds = timeLeft(timer);
    box.textContent = clockText(seconds);
    for (const mark of [10, 60]) if (seconds <= mark && timer.warned > mark) { say(timer.spoken(mark)); break; }
    timer.warned = seconds;
    if (!seconds && !waiting) send("expire", state.phase === "questions" ? { name: state.name, answers: state.answers } : {});
  }
}, 250);
// an element that is rendered anew keeps the focus and what is being typed
function replaceScreen(...children) {
  const active = document.activeElement, key = active?.dataset?.key;
  const typed = key && "value" in active && active.type !== "checkbox" && active.type !== "radio" ? [active.value, active.type === "text" ? active.selectionStart : null] : null;
  screen_.replaceChildren(...children.filter((child) => child));
  if (!key) return;
  const again = screen_.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (!again) return;
  if (typed && pendingDraft !== null) again.value = typed[0];
  again.focus();
  if (typed && typed[1] !== null && again.type === "text") again.setSelectionRange(typed[1], typed[1]);
}
