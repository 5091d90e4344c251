// The graph: edges as wide as what they pass on, and the step that is made.

function showEdges(page, seen) {
  const isMade = (i) => page.back.brought[i] !== undefined && (!seen || seen.back.brought[i] !== undefined);
  const contributions = page.back.brought.map((x, i) => (isMade(i) ? norm(x) : 0));
  const largest = Math.max(...contributions.filter(Number.isFinite), 1e-300);
  const current = page.at ? page.steps[page.at - 1] : null;
  for (const { element, line, passes } of page.edges) {
    const size = Math.max(...passes.map((i) => contributions[i]));
    const width = Number.isFinite(size) ? 1.2 + 4.3 * Math.sqrt(size / largest) : 5.5;
    line.style.strokeWidth = width.toFixed(2);
    element.classList.toggle("stopped", passes.every((i) => page.back.brought[i] === undefined));
    element.classList.toggle("severed", passes.some((i) => isSevered(page, i)));
    element.classList.toggle("ahead", Boolean(seen) && !seen.known.has(page.tape.passes[passes[0]].node));
    element.classList.toggle("current", Boolean(current) && passes.includes(current.pass));
  }
  showProduct(page, current);
  for (const { element, passes } of page.slopeMarks) {
    const known = !seen || passes.some(isMade);
    const total = passes.map((i) => flat(page.tape.slope(page.tape.passes[i], page.values))).reduce(plus);
    put(element, known ? ` = ${total.length > 1 ? summary([total.length], total, 16) : short(total[0])}` : "");
  }
  showRounds(page, (seen ?? { back: page.back }).back);
  for (const { element, node } of [...page.boxes, ...page.rows]) {
    const step = current && (current.node ?? (current.pass === undefined ? null : page.tape.passes[current.pass].argument));
    element.classList.toggle("ahead", Boolean(seen) && !seen.known.has(node));
    element.classList.toggle("current", step === node);
    element.classList.toggle("focused", node === page.focus);
    element.classList.toggle("cut", page.state.cuts.has(node) || page.state.hooks.has(node));
    if (element.dataset.box === undefined) continue;
    element.setAttribute("aria-pressed", node === page.focus);
    if (step === node) element.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
}

function isSevered(page, i) {
  // Whether nothing passes since the node of a pass is cut from the graph, where something would.
  return page.isAltered && page.back.brought[i] === undefined && page.whole.brought[i] !== undefined;
}

function edgeOf(page, i) {
  return page.edges.filter(({ passes }) => passes.includes(i));
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

function showRounds(page, back) {
  // What a loop says of its rounds: bars between the first and the last size.
  for (const element of page.all("[data-rounds]")) {
    const sizes = element.dataset.rounds.split(";").map((round) => {
      const parts = round.split("+").map((id) => (id[0] === "p" ? back.brought : back.adjoints)[Number(id.slice(1))]);
      return parts.some((x) => x === null || x === undefined) ? NaN : norm(parts.map(flat).reduce(plus));
    });
    put(element, sizes.every(Number.isNaN) ? "…" : `${short3(sizes[0])} ${bars(sizes)} ${short3(sizes.at(-1))}`);
  }
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
