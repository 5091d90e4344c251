// L against an input, with its tangent.

function showPlot(page) {
  const panel = page.part("plot");
  const k = page.data.inputs.includes(page.focus) ? page.focus : (page.plotted ?? page.data.inputs[0]);
  if (k === undefined || !panel) return;
  if (!page.isDone) {
    replaceParts(panel, [make("p", { class: "quiet" }, WORDS.hiddenNow)]);
    return;
  }
  if (k !== page.plotted) page.reach = null;
  page.plotted = k;
  const entry = k === page.focus ? page.entry : 0;
  const x = page.state.point.get(k)[entry];
  const started = performance.now();
  if (!page.reach || !(x > page.reach[0] && x < page.reach[1]) || page.reach[2] !== entry) {
    const reach = Number.isFinite(x) ? Math.max(2, 2 * Math.abs(x)) : 2;
    page.reach = [(Number.isFinite(x) ? x : 0) - reach, (Number.isFinite(x) ? x : 0) + reach, entry];
  }
  const [low, high] = page.reach;
  const point = new Map([...page.state.point].map(([i, a]) => [i, i === k ? a.slice() : a]));
  const at = (value) => {
    point.get(k)[entry] = value;
    const values = page.tape.values(point);
    return [...page.state.v].reduce((sum, [i, w]) => sum + w.reduce((s, u, j) => s + (u === 0 ? 0 : u * flat(values[i])[j]), 0), 0);
  };
  at(x);
  const cost = Math.max(0.01, performance.now() - started);
  const count = Math.max(20, Math.min(160, Math.floor(30 / cost)));
  const points = Array.from({ length: count + 1 }, (_, i) => low + ((high - low) * i) / count).map((u) => [u, at(u)]);
  const slope = (adjoint) => (adjoint === null ? 0 : flat(adjoint)[entry]);
  const [curve, passed] = [slope(page.whole.adjoints[k]), slope(page.back.adjoints[k])];
  drawPlot(page, panel, { k, entry, x, y: page.loss, slope: curve, passed, points, low, high });
}

function drawPlot(page, panel, { k, entry, x, y, slope, passed, points, low, high }) {
  const finite = [...points.map((p) => p[1]), y].filter(Number.isFinite).sort((a, b) => a - b);
  let [down, up] = [finite[0], finite.at(-1)];
  const [low3, high3] = [0.04, 0.96].map((share) => finite[Math.round(share * (finite.length - 1))]);
  if (up - down > 8 * (high3 - low3) && high3 > low3) [down, up] = [Math.min(low3, y), Math.max(high3, y)]; // without a pole
  if (!(up > down)) [down, up] = [(finite[0] ?? 0) - 1, (finite[0] ?? 0) + 1];
  const plotted = [page.lossName(), entryName(page.nodes[k].name, page.nodes[k].shape, entry), short(slope)];
  const title = page.isAltered ? say("plotTitleTwo", ...plotted, short(passed)) : say("plotTitle", ...plotted);
  if (!finite.length || !Number.isFinite(up - down) || !Number.isFinite(high - low)) {
    replaceParts(panel, [make("p", { class: "title" }, title), make("p", { class: "quiet" }, WORDS.plotNotFinite)]);
    return;
  }
  const margin = 0.06 * (up - down);
  [down, up] = [down - margin, up + margin];
  const ends = [up, down].map((end) => short(Number(end.toPrecision(3))));
  const [width, height, bottom] = [Math.min(560, panel.clientWidth || 360), 220, 26]; // letters keep their size
  const left = 14 + 8 * Math.max(...ends.map((end) => end.length));
  const px = (u) => left + ((u - low) / (high - low)) * (width - left - 8);
  const py = (u) => 8 + ((up - u) / (up - down)) * (height - bottom - 8);
  let way = "";
  for (const [u, w] of points) way += Number.isFinite(w) ? `${way.endsWith("Z") || !way ? "M" : "L"}${px(u).toFixed(1)} ${py(w).toFixed(1)}` : way && !way.endsWith("Z") ? "Z" : "";
  way = way.replace(/Z/g, "");
  const name = entryName(page.nodes[k].name, page.nodes[k].shape, entry);
  const clip = `clip-${page.data.id}`;
  const line = (x1, y1, x2, y2, look) => make("svg:line", { x1, y1, x2, y2, class: look });
  const text = (tx, ty, content, anchor) => make("svg:text", { x: tx, y: ty, "text-anchor": anchor, class: "tick" }, content);
  const svg = make("svg:svg", { viewBox: `0 0 ${width} ${height}`, class: "curve", role: "slider", tabindex: "0", "aria-label": say("plotSlider", name), "aria-valuemin": low, "aria-valuemax": high, "aria-valuenow": x, "aria-valuetext": `${name} = ${short(x)}, ${page.lossName()} = ${short(y)}` },
    make("svg:clipPath", { id: clip }, make("svg:rect", { x: left, y: 4, width: width - left - 8, height: height - bottom - 4 })),
    line(left, height - bottom, width - 8, height - bottom, "axis"), line(left, 8, left, height - bottom, "axis"),
    text(left, height - 8, short(low), "start"), text(width - 8, height - 8, short(high), "end"), text((left + width) / 2, height - 8, name, "middle"),
    text(left - 6, 16, ends[0], "end"), text(left - 6, height - bottom, ends[1], "end"),
    make("svg:path", { d: way, class: "graph", "clip-path": `url(#${clip})` }));
  if (Number.isFinite(x) && Number.isFinite(y)) {
    const heights = [low, high].map((u) => py(y + slope * (u - x)));
    if (heights.every((one) => Math.abs(one) < 1e7)) {
      const tangent = line(px(low), heights[0], px(high), heights[1], "tangent");
      tangent.setAttribute("clip-path", `url(#${clip})`);
      svg.append(tangent);
    }
    svg.append(make("svg:circle", { cx: px(x), cy: py(y), r: 6, class: "dot" }));
  }
  const to = (event) => {
    const box = (panel.querySelector("svg") ?? svg).getBoundingClientRect();
    const u = low + (((event.clientX - box.left) * (width / box.width) - left) / (width - left - 8)) * (high - low);
    page.setEntry({ node: k, entry, isV: false }, Number(Math.min(high, Math.max(low, u)).toPrecision(4)));
  };
  svg.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    to(event);
    follow(page, to);
  });
  svg.addEventListener("keydown", (event) => {
    const sign = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    if (!sign) return;
    event.preventDefault();
    nudge(page, { node: k, entry, isV: false }, sign, event);
  });
  replaceParts(panel, [make("p", { class: "title" }, title), svg]);
}
