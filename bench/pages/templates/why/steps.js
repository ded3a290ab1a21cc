(() => {
  const steps = [...document.querySelectorAll(".step")];
  const [back, ahead, all, where, told] = ["back", "ahead", "all", "where", "told"].map((id) => document.getElementById(id));
  const pressed = new Map([...document.querySelectorAll(".choices")].map((list) => [list.dataset.votes, []]));
  let current = 0;
  const show = (moves) => {
    const everything = all.getAttribute("aria-pressed") === "true";
    document.body.classList.toggle("all", everything);
    steps.forEach((step, k) => { step.hidden = !everything && k !== current; });
    const [, item, step] = steps[current].id.match(/i(\d+)s(\d)/);
    where.textContent = steps.length > 4 ? `item ${item} of ${steps.length / 4}, step ${step} of 4` : `step ${step} of 4`;
    back.disabled = current === 0;
    ahead.disabled = current === steps.length - 1;
    if (!moves) return;
    told.textContent = "";
    history.replaceState(null, "", `#${steps[current].id}`);
    steps[current].querySelector("h2").focus({ preventScroll: true });
    if (everything) steps[current].scrollIntoView({ block: "start" });
    else scrollTo(0, 0);
  };
  const go = (place) => { if (place >= 0 && place < steps.length) { current = place; show(true); } };
  const follow = () => {
    const place = steps.findIndex((step) => `#${step.id}` === location.hash);
    if (place >= 0) go(place);
  };
  const count = (id) => {
    const list = document.querySelector(`[data-votes="${id}"]`);
    const votes = pressed.get(id);
    const counts = [...list.children].map((_, k) => votes.filter((vote) => vote === k).length);
    [...list.children].forEach((line, k) => {
      line.querySelector("output").textContent = counts[k];
      line.querySelector(".bar-of span").style.width = `${votes.length ? 100 * counts[k] / votes.length : 0}%`;
    });
    const labels = [...list.querySelectorAll(".vote")].map((button) => button.dataset.label);
    document.getElementById(`${id}-voted`).textContent = votes.length ? `The vote: ${labels.map((label, k) => `${label}: ${counts[k]}`).join("; ")}.` : "";
    return (k) => `${labels[k]}: ${counts[k]}`;
  };
  const vote = (id, choice) => { pressed.get(id).push(choice); told.textContent = count(id)(choice); };
  const undo = (id) => {
    const choice = pressed.get(id).pop();
    if (choice !== undefined) told.textContent = `taken back. ${count(id)(choice)}`;
  };
  for (const list of document.querySelectorAll(".choices")) {
    [...list.querySelectorAll(".vote")].forEach((button, k) => button.addEventListener("click", () => vote(list.dataset.votes, k)));
  }
  document.querySelectorAll("[data-back]").forEach((button) => button.addEventListener("click", () => undo(button.dataset.back)));
  back.addEventListener("click", () => go(current - 1));
  ahead.addEventListener("click", () => go(current + 1));
  all.addEventListener("click", () => { all.setAttribute("aria-pressed", String(all.getAttribute("aria-pressed") !== "true")); show(false); });
  addEventListener("hashchange", follow);
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !document.getElementById("keys").hidden) return;
    if (event.target instanceof Element && event.target.closest(".scroll") && event.key.startsWith("Arrow")) return;
    const list = steps[current].querySelector(".choices");
    const choice = Number(event.key) - 1;
    if (event.key === "ArrowRight") go(current + 1);
    else if (event.key === "ArrowLeft") go(current - 1);
    else if (list && event.key === "u") undo(list.dataset.votes);
    else if (list && choice >= 0 && choice < list.children.length) vote(list.dataset.votes, choice);
  });
  document.querySelector(".moves").hidden = false;
  show(false);
  follow();
  addEventListener("load", () => { if (location.hash) go(current); });  // after the browser's own jump to the anchor
})();
