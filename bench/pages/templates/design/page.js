"use strict";
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const read = () => { try { return localStorage.getItem("calibrant-theme"); } catch { return null; } };
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const show = () => button.setAttribute("aria-pressed", String(isDark()));
  const kept = read();
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  show();
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("calibrant-theme", root.dataset.theme); } catch { /* not kept where storage is off */ }
    show();
  });
  document.getElementById("print").addEventListener("click", () => print());
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open], .unprinted)")];
    folded.forEach((part) => { part.open = true; });
  });
  addEventListener("afterprint", () => folded.forEach((part) => { part.open = false; }));
  const keys = document.getElementById("keys");
  const help = document.getElementById("help");
  let before = null;
  const open = (wanted) => {
    if (wanted) before = document.activeElement;
    keys.hidden = !wanted;
    help.setAttribute("aria-expanded", String(wanted));
    if (wanted) { keys.tabIndex = -1; keys.focus(); } else if (before) before.focus();
  };
  help.addEventListener("click", () => open(keys.hidden));
  const typing = (target) => target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
  addEventListener("keydown", (event) => {
    if (typing(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "?") open(keys.hidden);
    else if (event.key === "Escape" && !keys.hidden) open(false);
    else if (event.key === "j") document.getElementById("next")?.click();
    else if (event.key === "k") document.getElementById("previous")?.click();
  });
  document.addEventListener("click", async (event) => {
    const one = event.target instanceof Element ? event.target.closest("button[data-copy]") : null;
    if (!one) return;
    const source = document.getElementById(one.dataset.copy);
    const done = document.getElementById(`${one.dataset.copy}-copied`);
    try {
      await navigator.clipboard.writeText(source.textContent);
      if (done) done.textContent = "Copied.";
    } catch {
      const range = document.createRange();
      range.selectNodeContents(source);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      if (done) done.textContent = "Selected: press Ctrl+C.";
    }
  });
})();
