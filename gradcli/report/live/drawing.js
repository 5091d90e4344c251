// The graph: edges as wide as what they pass on, and the step that is made.

class Drawing {
  // The numbers in a part of the page, and its edges and boxes: the whole page's, or those of the inside of a box.
  constructor(page, root, tape) {
    Object.assign(this, { page, root, tape });
    this.card = root.dataset.card;
    this.valueMarks = this.marks("value");
    this.adjointMarks = this.marks("adjoint");
    this.slopeMarks = this.all("[data-slope]").map((e) => ({ element: e, passes: e.dataset.slope.split(" ").map(Number) }));
    this.edges = this.all("[data-passes]").map((e) => ({ element: e, line: e.querySelector("path"), passes: e.dataset.passes.split(" ").map(Number) }));
    this.boxes = this.all("[data-box]").map((e) => ({ element: e, node: Number(e.dataset.node), isBox: true, opens: e.dataset.inside !== undefined }));
    this.rows = this.all("[data-row]").map((e) => ({ element: e, node: Number(e.dataset.row) }));
    this.rounds = this.all("[data-rounds]");
    for (const { element } of this.boxes) {
      element.setAttribute("tabindex", "0");
      element.setAttribute("role", "button");
    }
  }

  all(selector) {
    return [...this.root.querySelectorAll(selector)].filter((e) => e.closest("[data-card]")?.dataset.card === this.card);
  }

  marks(name) {
    return this.all(`[data-${name}]`).map((element) => {
      const [node, entry] = [Number(element.dataset[name]), Number(element.dataset.entry ?? -1)];
      const { name: own, shape } = this.tape.nodes[node];
      if (entry >= 0) {
        element.classList.add("number", name);
        if (!element.hasAttribute(`data-${name}-of`)) element.setAttribute(`data-${name}-of`, entryName(own, shape, entry));
      }
      return { element, node, entry };
    });
  }

  put({ element, node, entry }, array) {
    const { shape } = this.tape.nodes[node];
    const none = array === null || array === undefined;
    put(element, none ? (this.page.isDone ? WORDS.none : "…") : entry < 0 ? summary(shape, flat(array), 26) : short(flat(array)[entry]));
    setNumber(element, !none && (entry >= 0 || !shape.length) ? flat(array)[Math.max(entry, 0)] : null);
    flag(element, "unknown", none);
  }

  show({ seen, values, back, whole }) {
    const known = seen ? seen.back : back;
    for (const m of this.valueMarks) this.put(m, seen && !seen.known.has(m.node) ? null : values[m.node]);
    for (const m of this.adjointMarks) this.put(m, known.adjoints[m.node]);
    const isMade = (i) => back.brought[i] !== undefined && known.brought[i] !== undefined;
    const sizes = back.brought.map((x, i) => (isMade(i) ? norm(x) : 0));
    const largest = Math.max(...sizes.filter(Number.isFinite), 1e-300);
    const isOwn = this.tape === this.page.tape;
    const step = isOwn && this.page.at ? this.page.steps[this.page.at - 1] : null;
    for (const { element, line, passes } of this.edges) {
      const size = Math.max(...passes.map((i) => sizes[i] ?? 0));
      const width = (Number.isFinite(size) ? 1.2 + 4.3 * Math.sqrt(size / largest) : 5.5).toFixed(1);
      if (line.wide !== width) line.style.strokeWidth = line.wide = width;
      flag(element, "stopped", passes.every((i) => back.brought[i] === undefined));
      // Nothing passes since a node is cut from the graph, where something would.
      flag(element, "severed", this.page.isAltered && passes.some((i) => back.brought[i] === undefined && whole.brought[i] !== undefined));
      flag(element, "ahead", Boolean(seen) && !seen.known.has(this.tape.passes[passes[0]].node));
      flag(element, "current", Boolean(step) && passes.includes(step.pass));
    }
    for (const { element, passes } of this.slopeMarks) {
      const total = passes.map((i) => flat(this.tape.slope(this.tape.passes[i], values))).reduce(plus);
      put(element, !seen || passes.some(isMade) ? ` = ${total.length > 1 ? summary([total.length], total, 16) : short(total[0])}` : "");
    }
    for (const element of this.rounds) showRounds(element, known);
    const at = step && (step.node ?? (step.pass === undefined ? null : this.tape.passes[step.pass].argument));
    for (const { element, node, isBox, opens } of [...this.boxes, ...this.rows]) {
      flag(element, "ahead", Boolean(seen) && !seen.known.has(node));
      flag(element, "current", at === node);
      flag(element, "focused", isOwn && node === this.page.focus);
      flag(element, "cut", isOwn && (this.page.state.cuts.has(node) || this.page.state.hooks.has(node)));
      if (!isBox) continue;
      if (element.pressed !== (isOwn && node === this.page.focus) && !opens) {
        element.pressed = isOwn && node === this.page.focus;
        element.setAttribute("aria-pressed", element.pressed);
      }
      if (at === node) element.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
  }
}

function edgeOf(page, i) {
  return page.drawing.edges.filter(({ passes }) => passes.includes(i));
}

function showProduct(page, step) {
  // The product of the current backward step, on its edge: 100·10 = 1000.
  page.root.querySelector(".product")?.remove();
  if (step?.pass === undefined || step === null) return;
  const [edge] = edgeOf(page, step.pass);
  const pass = page.tape.passes[step.pass];
  if (!edge || page.nodes[pass.node].shape.length) return;
  const slope = page.tape.slope(pass, page.values);
  const value = short(norm(page.back.brought[step.pass]) === 0 ? 0 : flat(page.back.brought[step.pass])[0]);
  if (slope === null || page.nodes[pass.argument].shape.length) return;
  const middle = edge.line.getPointAtLength?.(edge.line.getTotalLength() / 2) ?? { x: 0, y: 0 };
  const text = `${bracketed(short(flat(page.back.adjoints[pass.node])[0]))}·${bracketed(short(flat(slope)[0]))} = ${value}`;
  edge.element.parentNode.append(make("svg:text", { x: middle.x + 6, y: middle.y + 4, class: "product" }, text));
}

function showPulse(page, i) {
  // A dot that travels up the edges of a pass.
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const lines = edgeOf(page, i).map(({ line }) => line).filter((line) => line.getTotalLength);
  const dots = lines.map((line) => line.parentNode.parentNode.appendChild(make("svg:circle", { r: 5, class: "pulse" })));
  const started = performance.now();
  const move = (now) => {
    const share = Math.min(1, (now - started) / PULSE);
    dots.forEach((dot, k) => {
      const { x, y } = lines[k].getPointAtLength((1 - share) * lines[k].getTotalLength());
      dot.setAttribute("cx", x);
      dot.setAttribute("cy", y);
    });
    if (share < 1) requestAnimationFrame(move);
    else for (const dot of dots) dot.remove();
  };
  requestAnimationFrame(move);
}

function isWaiting(page, seen, k) {
  return Boolean(seen) && (page.at <= page.forwards || seen.waiting.has(k));
}

function showRounds(element, back) {
  // What a loop says of its rounds: bars between the first and the last size.
  const sizes = element.dataset.rounds.split(";").map((round) => {
    const parts = round.split("+").map((id) => (id[0] === "p" ? back.brought : back.adjoints)[Number(id.slice(1))]);
    return parts.some((x) => x === null || x === undefined) ? NaN : norm(parts.map(flat).reduce(plus));
  });
  put(element, sizes.every(Number.isNaN) ? "…" : `${short3(sizes[0])} ${bars(sizes)} ${short3(sizes.at(-1))}`);
}

const short3 = (x) => short(Number(x.toPrecision(3)));

function bars(numbers) {
  // Numbers as bars, as gradcli's text has them: the lowest and the highest as far apart as bars go.
  let shown = numbers.length > MOST_BARS
    ? Array.from({ length: MOST_BARS }, (_, k) => numbers[Math.round((k * (numbers.length - 1)) / (MOST_BARS - 1))]) : numbers;
  const finite = shown.filter(Number.isFinite);
  if (finite.length && Math.min(...finite) > 0 && Math.max(...finite) > 100 * Math.min(...finite)) shown = shown.map(Math.log);
  const [low, high] = [Math.min(...shown.filter(Number.isFinite)), Math.max(...shown.filter(Number.isFinite))];
  return shown.map((x) => (Number.isFinite(x) ? BARS[Math.round((7 * (x - low)) / (high - low || 1))] : "×")).join("");
}
