// Boxes that open: what is in a box is drawn below its layer, and what was there moves on.

const BETWEEN = 24; // pixels above and below an inside

class Inside {
  // The numbers of an inside: those of the page, or of the definition of a call, which has a tape of its own.
  constructor(page, card, key) {
    Object.assign(this, { page, key, data: page.data.insides[key] });
    this.outer = page.insides.get(card.parentNode.closest("[data-card]")?.dataset.card);
    this.tape = this.data ? new Tape(this.data, page.tape.kernels) : (this.outer ?? page).tape;
    this.drawing = new Drawing(page, card, this.tape);
  }

  show() {
    const { page, data, tape } = this;
    this.now = this.outer?.now ?? { seen: knownSoFar(page), values: page.values, back: page.back, whole: page.whole };
    if (data) {
      const { seen, values: before, back: passed } = this.now;
      const values = tape.values(new Map(data.inputs.map((k, i) => [k, flat(before[data.args[i]])])));
      const adjoint = (seen ? seen.back : passed).adjoints[data.call];
      const out = tape.nodes.length - 1;
      const back = tape.reverse(values, new Map(adjoint === null ? [] : [[out, adjoint]]), new Map(), new Map());
      const known = new Set(!seen || seen.known.has(data.call) ? tape.nodes.keys() : data.inputs);
      this.now = { seen: seen ? { known, back } : null, values, back, whole: back };
    }
    this.drawing.show(this.now);
  }
}

function toggleBox(page, box) {
  if (box.getAttribute("aria-expanded") === "true") closeBox(page, box);
  else openBox(page, box);
  page.draw(knownSoFar(page));
  showView(page);
  page.later(); // the link has what is open
}

function closeBoxes(page) {
  for (const box of page.all('.gg-node[aria-expanded="true"]')) if (box.isConnected) closeBox(page, box);
}

function openBox(page, box) {
  const group = box.parentNode;
  for (const other of group.querySelectorAll(':scope > [aria-expanded="true"]')) {
    if (other.dataset.end === box.dataset.end) closeBox(page, other); // one in each layer
  }
  const key = box.dataset.inside;
  const svg = document.importNode(page.root.querySelector(`template[data-inside="${key}"]`).content.firstElementChild, true);
  const card = make("svg:g", { class: "gg-card", "data-card": key }, make("svg:path", { class: "gg-link" }), make("svg:rect", { rx: 6 }), svg);
  group.append(card);
  box.setAttribute("aria-expanded", "true");
  page.insides.set(key, new Inside(page, card, key));
  arrange(group);
}

function closeBox(page, box) {
  const group = box.parentNode;
  const card = group.querySelector(`:scope > [data-card="${box.dataset.inside}"]`);
  for (const inner of [card, ...card.querySelectorAll("[data-card]")]) page.insides.delete(inner.dataset.card);
  card.remove();
  box.setAttribute("aria-expanded", "false");
  arrange(group);
}

function arrange(group) {
  // Moves what lies behind an inside by the room that this takes, and draws the lines through that room.
  const svg = group.ownerSVGElement;
  const across = svg.dataset.horizontal === undefined ? 0 : 1; // the axis along which boxes of a layer lie: x or y
  const pair = (a, b) => (across ? [b, a] : [a, b]); // of a coordinate across and one along, as x and y
  svg.first ??= ["width", "height"].map((side) => Number(svg.getAttribute(side)));
  for (const line of group.querySelectorAll(":scope > .bridge")) line.remove();
  const size = (element) => ["width", "height"].map((side) => Number(element.getAttribute(side)));
  const open = [...group.querySelectorAll(':scope > [aria-expanded="true"]')].map((box) => {
    const card = group.querySelector(`:scope > [data-card="${box.dataset.inside}"]`);
    return { box, card, end: Number(box.dataset.end), size: size(card.lastElementChild) };
  }).sort((a, b) => a.end - b.end);
  const room = ({ size: sides }) => sides[1 - across] + 2 * BETWEEN;
  const moved = (at) => open.reduce((sum, o) => sum + (o.end <= at + 0.5 ? room(o) : 0), 0);
  for (const child of [...group.children]) {
    if (child.dataset.card !== undefined || child.classList.contains("product") || child.classList.contains("pulse")) continue;
    const path = child.classList.contains("gg-edge") ? /^M([-\d.]+) ([-\d.]+)/.exec(child.firstElementChild.getAttribute("d")) : null;
    const start = path ? [Number(path[1]), Number(path[2])] : ["x", "y"].map((name) => Number(child.querySelector("rect").getAttribute(name)));
    const by = moved(start[1 - across]);
    child.setAttribute("transform", `translate(${pair(0, by).join(" ")})`);
    const band = open.find((o) => Math.abs(o.end - start[1 - across]) < 1);
    if (!path || !band) continue;
    const [from, to] = [by - room(band), by].map((shift) => pair(start[across], start[1 - across] + shift).join(" "));
    group.prepend(make("svg:path", { class: "gg-line bridge", d: `M${from}L${to}` }));
  }
  let [width, height] = svg.first;
  for (const o of open) {
    const rect = o.box.querySelector("rect");
    const corner = ["x", "y"].map((name) => Number(rect.getAttribute(name)));
    const sides = size(rect);
    const middle = corner[across] + sides[across] / 2;
    const whole = svg.first[across] - 24;
    const at = Math.max(0, Math.min(whole - o.size[across], middle - o.size[across] / 2));
    const along = o.end + moved(o.end) - room(o) + BETWEEN;
    const [x, y] = pair(at, along);
    o.card.querySelector(":scope > rect").replaceWith(make("svg:rect", { x, y, width: o.size[0], height: o.size[1], rx: 6 }));
    o.card.lastElementChild.setAttribute("x", x);
    o.card.lastElementChild.setAttribute("y", y);
    const foot = pair(middle, corner[1 - across] + sides[1 - across] + moved(o.end) - room(o));
    o.card.firstElementChild.setAttribute("d", `M${foot.join(" ")}L${pair(middle, along).join(" ")}`);
    if (across) height = Math.max(height, o.size[1] + 24);
    else width = Math.max(width, o.size[0] + 24);
  }
  const all = open.reduce((sum, o) => sum + room(o), 0);
  if (across) width += all;
  else height += all;
  for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` })) svg.setAttribute(name, value);
  const outer = svg.parentNode.closest("[data-card]");
  if (outer) arrange(outer.parentNode);
}
