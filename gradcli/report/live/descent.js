// Gradient descent.

function showDescent(page) {
  const panel = page.part("losses");
  if (!panel) return;
  const rate = page.part("rate");
  if (document.activeElement !== rate) rate.value = typed(page.state.rate);
  put(page.part("update"), page.isDone ? page.stopped || updateLine(page) : "");
  if (page.losses.filter(Number.isFinite).length < 2) {
    replaceParts(panel, []);
    return;
  }
  const [width, height] = [360, 90];
  const finite = page.losses.filter(Number.isFinite);
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const at = (y, k) => `${(6 + ((width - 12) * k) / (page.losses.length - 1)).toFixed(1)},${(high > low ? 8 + ((high - y) / (high - low)) * (height - 16) : height / 2).toFixed(1)}`;
  const drawn = page.losses.map((y, k) => (Number.isFinite(y) ? at(y, k) : null)).filter((text) => text !== null);
  const title = say("losses", page.lossName(), page.losses.length - 1, short(page.losses[0]), short(page.losses.at(-1)));
  const svg = make("svg:svg", { viewBox: `0 0 ${width} ${height}`, class: "curve", role: "img", "aria-label": title }, make("svg:polyline", { points: drawn.join(" "), class: "graph" }),
    ...drawn.slice(-1).map((p) => make("svg:circle", { cx: p.split(",")[0], cy: p.split(",")[1], r: 4, class: "dot" })));
  replaceParts(panel, [make("p", { class: "title" }, title), svg]);
}

function movingInputs(page) {
  return new Set(page.all("[data-moves]").filter((e) => e.checked).map((e) => Number(e.dataset.moves)));
}

function updateLine(page) {
  // The next step as arithmetic: x0 = 1 - 0.1·26 = -1.6.
  const lines = [...movingInputs(page)].slice(0, 3).flatMap((k) => {
    const [n, g] = [page.nodes[k], page.back.adjoints[k]];
    if (g === null) return [];
    const [x, slope] = [page.state.point.get(k)[0], flat(g)[0]];
    const name = entryName(n.name, n.shape, 0);
    return [say("descentLine", name, short(x), short(page.state.rate), bracketed(short(slope)), short(x - page.state.rate * slope))];
  });
  return lines.join(",  ");
}

function descend(page, times) {
  const moving = movingInputs(page);
  page.stopped = "";
  page.change("", (state) => {
    if (!page.losses.length) page.losses.push(page.loss);
    for (let i = 0; i < times; i++) {
      for (const k of moving) {
        const gradient = page.back.adjoints[k];
        if (gradient === null) continue;
        const next = state.point.get(k).map((x, e) => x - state.rate * flat(gradient)[e]);
        state.point.set(k, page.nodes[k].single ? next.map(Math.fround) : next);
      }
      page.compute();
      page.losses.push(page.loss);
      if (Number.isFinite(page.loss) && Math.abs(page.loss) <= DIVERGED * Math.max(1, Math.abs(page.losses[0]))) continue;
      page.stopped = say("descentStopped", page.losses.length - 1, page.lossName(), short(page.loss));
      break;
    }
  });
}
