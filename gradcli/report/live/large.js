// An array of many entries: its statistics, as an image where it is one, and a field for the entry in focus

class Large {
  constructor(page, element) {
    this.page = page;
    this.element = element;
    this.node = Number(element.dataset.large);
    this.input = element.querySelector("[data-input], [data-cotangent]");
    this.index = element.querySelector("[data-index]");
    [this.canvas, this.gradients] = element.querySelectorAll("canvas");
    this.statistics = element.querySelector("[data-statistics]");
    this.gradient = element.querySelector("[data-grad]");
    this.index.addEventListener("change", () => {
      const n = page.nodes[this.node];
      const entry = entryOf("", n.shape, `[${this.index.value}]`);
      if (entry >= 0) this.select(entry);
      else this.index.setAttribute("aria-invalid", "true");
    });
    this.canvas?.addEventListener("pointerdown", (event) => this.paint(event));
    this.canvas?.addEventListener("keydown", (event) => this.move(event));
  }

  get shape() {
    return this.page.nodes[this.node].shape;
  }

  get grid() {
    // Channels, rows and columns, and how an entry is numbered.
    const s = this.shape.slice();
    while (s.length > 2 && s[0] === 1) s.shift();
    if (s.length === 2) return { c: 1, h: s[0], w: s[1], at: (_, i, j) => i * s[1] + j };
    if (s[2] === 1 || (s[2] === 3 && s[0] > 3)) return { c: s[2], h: s[0], w: s[1], at: (c, i, j) => (i * s[1] + j) * s[2] + c };
    return { c: s[0], h: s[1], w: s[2], at: (c, i, j) => (c * s[1] + i) * s[2] + j };
  }

  select(entry) {
    const { page, input } = this;
    const field = page.fields.get(input);
    field.entry = entry;
    const name = entryName(page.nodes[this.node].name, this.shape, entry);
    input.dataset[field.isV ? "cotangent" : "input"] = name;
    input.dataset.entry = String(entry);
    input.setAttribute("aria-label", name);
    this.index.value = name.slice(name.lastIndexOf("[") + 1, -1);
    this.index.removeAttribute("aria-invalid");
    for (const mark of page.gradMarks) {
      if (mark.element === this.gradient) {
        mark.entry = entry;
        mark.element.dataset.gradOf = name;
      }
    }
    page.choose(this.node, entry);
    page.show();
  }

  paint(event) {
    // The entry under the pointer changes from dark to bright, or back, and so do those that it is drawn over.
    const { page, node } = this;
    const { c, h, w, at } = this.grid;
    const pixel = (e) => {
      const box = this.canvas.getBoundingClientRect();
      return [Math.floor(((e.clientY - box.top) / box.height) * h), Math.floor(((e.clientX - box.left) / box.width) * w)];
    };
    const array = page.state.point.get(node);
    const [low, high] = this.range(array);
    const value = array[at(0, ...pixel(event))] > (low + high) / 2 ? low : high;
    const draw = (e) => {
      const [i, j] = pixel(e);
      if (i < 0 || j < 0 || i >= h || j >= w) return;
      this.select(at(0, i, j));
      page.change(`drawn ${node}`, (state) => {
        for (let k = 0; k < c; k++) state.point.get(node)[at(k, i, j)] = value;
      });
    };
    page.last = "";
    draw(event);
    follow(page, draw);
  }

  move(event) {
    const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    const { h, w, at } = this.grid;
    const entry = this.page.fields.get(this.input).entry;
    if (!by) return;
    event.preventDefault();
    for (let i = 0; i < h; i++) {
      for (let j = 0; j < w; j++) {
        if (at(0, i, j) !== entry) continue;
        this.select(at(0, Math.min(h - 1, Math.max(0, i + by[0])), Math.min(w - 1, Math.max(0, j + by[1]))));
        return;
      }
    }
  }

  range(array) {
    const finite = array.filter(Number.isFinite);
    const [low, high] = finite.length ? [finite.reduce((a, b) => Math.min(a, b)), finite.reduce((a, b) => Math.max(a, b))] : [0, 1];
    return high > low ? [low, high] : [Math.min(0, low), Math.max(1, low)];
  }

  show() {
    const { page, node } = this;
    const array = (page.fields.get(this.input).isV ? page.state.v : page.state.point).get(node);
    const mean = array.reduce((a, b) => a + b, 0) / array.length;
    put(this.statistics, say("statistics", array.length, short(array.reduce((a, b) => Math.min(a, b))), short(mean), short(array.reduce((a, b) => Math.max(a, b)))));
    if (!this.canvas) return;
    const [low, high] = this.range(array);
    this.draw(this.canvas, (c, i, j) => Array(3).fill().map((_, k) => (255 * (array[this.grid.at(c === 3 ? k : 0, i, j)] - low)) / (high - low)));
    const adjoint = page.back.adjoints[node];
    this.gradients.hidden = adjoint === null;
    if (adjoint === null) return;
    // Red what raises the output, blue what lowers it, and the more so the stronger the colour.
    const largest = adjoint.reduce((most, g) => (Number.isFinite(g) ? Math.max(most, Math.abs(g)) : most), 0) || 1;
    this.draw(this.gradients, (c, i, j) => {
      const g = Array.from({ length: c }, (_, k) => adjoint[this.grid.at(k, i, j)]).reduce((a, b) => a + b) / (c * largest);
      const end = g > 0 ? [178, 24, 43] : [33, 102, 172];
      return end.map((e) => 255 + Math.min(1, Math.abs(g)) * (e - 255));
    });
  }

  draw(canvas, colour) {
    const { c, h, w } = this.grid;
    Object.assign(canvas, { width: w, height: h });
    const context = canvas.getContext("2d");
    const image = context.createImageData(w, h);
    for (let i = 0; i < h; i++) {
      for (let j = 0; j < w; j++) image.data.set([...colour(c, i, j), 255], (i * w + j) * 4);
    }
    context.putImageData(image, 0, 0);
  }
}

function showHeat(page, { element, kind, node }, seen) {
  // An array as cells: green above 0, purple below, white at 0, on one scale.
  const value = seen && !seen.known.has(node) ? null : page.values[node];
  const array = kind === "value" ? value : (seen ? seen.back : page.back).adjoints[node];
  element.hidden = array === null || array === undefined;
  if (element.hidden) return;
  const { shape, size } = page.nodes[node];
  const columns = shape.at(-1);
  const largest = array.reduce((most, x) => (Number.isFinite(x) ? Math.max(most, Math.abs(x)) : most), 0) || 1;
  const rows = Math.min(HEAT_ROWS, size / columns); // of more, the first
  Object.assign(element, { width: columns, height: rows });
  element.style.width = `${Math.max(24, Math.min(280, 8 * columns))}px`;
  const image = new ImageData(columns, rows);
  array.slice(0, rows * columns).forEach((x, k) => {
    const end = x > 0 ? [27, 120, 55] : [118, 42, 131];
    const share = Number.isFinite(x) ? Math.abs(x) / largest : 1;
    image.data.set([...(Number.isFinite(x) ? end : [178, 24, 43]).map((e) => 255 + share * (e - 255)), 255], 4 * k);
  });
  element.getContext("2d").putImageData(image, 0, 0);
  element.title = say("heatScale", short(array.reduce((a, b) => Math.min(a, b))), short(array.reduce((a, b) => Math.max(a, b))));
}
