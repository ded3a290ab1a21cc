// What the theme leaves out for keyboards and screen readers.
const SCROLLING = ".content pre, .content .table-wrapper, .content .cell_output";

function label(selector, text) {
  for (const part of document.querySelectorAll(selector)) part.setAttribute("aria-label", text);
}

function reachScrolling() {
  for (const part of document.querySelectorAll(SCROLLING)) {
    const scrolls = part.scrollWidth > part.clientWidth || part.scrollHeight > part.clientHeight;
    if (!scrolls || part.hasAttribute("tabindex")) continue;
    part.tabIndex = 0;
    part.setAttribute("role", "group");
    part.setAttribute("aria-label", part.matches("pre") ? "code" : part.matches(".table-wrapper") ? "table" : "output");
  }
}

// Code to paste: of a terminal's session the commands alone, without their prompts and what they print.
function pasted(block) {
  const text = block.textContent.trimEnd();
  if (!block.closest(".highlight-console")) return text;
  return text.split("\n").filter((line) => line.startsWith("$ ")).map((line) => line.slice(2)).join("\n");
}

function addCopyButtons() {
  for (const block of document.querySelectorAll(".content .highlight pre")) {
    if (block.closest(".cell_output")) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(pasted(block));
        button.textContent = "copied";
      } catch {
        getSelection().selectAllChildren(block);
        button.textContent = "press Ctrl+C";
      }
      setTimeout(() => { button.textContent = "copy"; }, 2000);
    });
    block.parentElement.append(button);
  }
}

addEventListener("DOMContentLoaded", () => {
  addCopyButtons();
  label(".sidebar-drawer", "Pages");
  label(".toc-drawer", "On this page");
  for (const icons of document.querySelectorAll(".content-icon-container")) icons.setAttribute("role", "navigation");
  label(".content-icon-container", "This page");
  for (const caption of document.querySelectorAll("[role=heading]:not([aria-level])")) caption.ariaLevel = "2";
  for (const overlay of document.querySelectorAll("label.overlay")) overlay.setAttribute("aria-hidden", "true");
  if (!document.querySelector("h1")) {  // of the search page
    const heading = document.createElement("h1");
    heading.textContent = "Search";
    document.querySelector("[role=main]")?.prepend(heading);
  }
});
addEventListener("load", reachScrolling);
addEventListener("resize", reachScrolling);
