if (matchMedia("(max-width: 640px)").matches) document.querySelectorAll("details.evidence").forEach((part) => { part.open = false; });
document.addEventListener("click", (event) => {
  const pressed = event.target instanceof Element ? event.target.closest("button[data-zoom], button[data-save]") : null;
  if (!pressed) return;
  const picture = pressed.parentElement.previousElementSibling.querySelector("svg");
  if (pressed.dataset.zoom) {
    const width = picture.getBoundingClientRect().width * Number(pressed.dataset.zoom);
    Object.assign(picture.style, { width: `${width}px`, minWidth: "0", maxWidth: "none", height: "auto" });
    return;
  }
  const copy = picture.cloneNode(true);
  const drawn = picture.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((part, i) => {
    const style = getComputedStyle(drawn[i]);
    for (const name of ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "font"]) part.style.setProperty(name, style.getPropertyValue(name));
  });
  copy.removeAttribute("style");
  copy.style.background = getComputedStyle(document.body).backgroundColor;
  const file = new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
  const link = document.createElement("a");
  Object.assign(link, { href: URL.createObjectURL(file), download: pressed.dataset.save }).click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});
