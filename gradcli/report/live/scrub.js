// Numbers that follow a drag or the arrow keys, and the ghost of the number before.

const GHOST = 1000; // milliseconds

function nudge(page, field, sign, event) {
  const value = (field.isV ? page.state.v : page.state.point).get(field.node)[field.entry];
  const first = (field.isV ? page.start.v : page.start.point).get(field.node)[field.entry];
  const size = Math.max(Math.abs(first), Math.abs(value) / 10);
  const unit = Number.isFinite(size) && size > 0 ? 10 ** Math.min(6, Math.max(-6, Math.floor(Math.log10(size)) - 1)) : 0.1;
  const step = Math.min(unit, 0.1 * 10 ** Math.max(0, Math.floor(Math.log10(size || 1)))) * (event.shiftKey ? 10 : event.altKey ? 0.1 : 1);
  field.typing = false;
  if (field.input) field.input.value = "";
  page.setEntry(field, Number(((Number.isFinite(value) ? value : 0) + sign * step).toPrecision(12)));
}

function follow(page, move) {
  // Follows the pointer until it is let go; what it changed is one entry of the history.
  const held = new AbortController();
  const end = () => {
    held.abort();
    page.last = "";
  };
  window.addEventListener("pointermove", move, held);
  for (const name of ["pointerup", "pointercancel"]) window.addEventListener(name, end, held);
}

function scrub(page, element, field, focus) {
  // A drag sideways changes the number of a field; `focus` leads the keys there.
  element.addEventListener("pointerdown", (event) => {
    let from = event.clientX;
    follow(page, (e) => {
      const steps = Math.trunc((e.clientX - from) / 6);
      from += 6 * steps;
      for (let k = 0; k < Math.abs(steps); k++) nudge(page, field, Math.sign(steps), e);
    });
    event.preventDefault();
    focus();
  });
}

function fieldOf(page, { node, entry, isV }) {
  return [...page.fields.values()].find((f) => f.node === node && f.entry === entry && f.isV === isV);
}

function scrubBoxes(page) {
  // The number of an input in its box follows a drag, and the arrow keys while the box is in focus.
  for (const { element, node } of page.drawing.boxes) {
    const field = node < 0 || page.nodes[node].shape.length ? undefined : fieldOf(page, { node, entry: 0, isV: false });
    const line = element.querySelector("[data-value]")?.closest("text");
    if (!field || !line) continue;
    line.classList.add("scrub");
    scrub(page, line, field, () => element.focus({ preventScroll: true }));
    element.addEventListener("keydown", (event) => {
      const sign = { ArrowUp: 1, ArrowDown: -1 }[event.key];
      if (!sign) return;
      event.preventDefault();
      nudge(page, field, sign, event);
    });
  }
}

function showGhost(page, field, isNew) {
  // The number that a change began with stays above its field and its box for a second after it; nothing moves for it.
  if (isNew) endGhosts(page);
  clearTimeout(page.haunting);
  page.haunting = setTimeout(() => endGhosts(page), GHOST);
  if (page.ghosts.length || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const { node, entry, isV } = field;
  const before = short((isV ? page.state.v : page.state.point).get(node)[entry]);
  const box = isV || page.nodes[node].shape.length ? null : page.drawing.valueMarks.find((m) => m.node === node && m.element.closest("[data-box]"));
  for (const element of [fieldOf(page, field)?.input, box?.element]) {
    const place = element?.getClientRects()[0];
    if (!place) continue; // of a field that is not shown
    const ghost = make("span", { class: "ghost", "aria-hidden": "true" }, before);
    ghost.style.left = `${place.left}px`;
    ghost.style.top = `${place.top}px`;
    page.root.append(ghost);
    page.ghosts.push(ghost);
  }
}

function endGhosts(page) {
  for (const ghost of page.ghosts) ghost.remove();
  page.ghosts = [];
}
