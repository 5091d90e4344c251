// The state of a page: the point, the cotangents, what is cut, the history of changes, and what is shown of it.

function make(tag, attributes = {}, ...children) {
  const element = tag.includes(":")
    ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

function put(element, text) {
  // What is there already is not written again: the browser would lay it out anew.
  if (element.said === text) return;
  element.said = text;
  element.textContent = text;
}

function flag(element, name, is) {
  element.flags ??= {};
  if (element.flags[name] === Boolean(is)) return;
  element.flags[name] = Boolean(is);
  element.classList.toggle(name, Boolean(is));
}

function setNumber(element, value) {
  // The number as it is, for programs that read the page; none while it is hidden.
  if (Object.is(element.number, value)) return;
  element.number = value;
  if (value === null) delete element.dataset.number;
  else element.dataset.number = String(value);
}

class Page {
  constructor(root, data, kernels, linked) {
    this.root = root;
    this.data = data;
    this.linked = linked;
    this.tape = new Tape(data, kernels);
    this.nodes = this.tape.nodes;
    this.byName = new Map(data.inputs.map((k) => [this.nodes[k].name, k]));
    this.outputs = [...new Set(data.v.map(([k]) => k))];
    // An output of several names has their v together, under the first.
    this.byCotangent = new Map(this.outputs.map((k) => [`${data.v.find(([own]) => own === k)[1]}.v`, k]));
    this.start = this.initial();
    this.state = this.initial();
    this.past = [];
    this.last = "";
    this.focus = data.inputs.find((k) => this.tape.wrt.has(k)) ?? data.inputs[0] ?? this.outputs[0];
    this.entry = 0;
    this.plotted = null;
    this.losses = [];
    this.at = null; // how many steps have been made; null: all is shown
    this.guessing = false;
    this.guess = null; // the number that is to be guessed
    this.trend = []; // the last losses
    this.fields = new Map();
    this.ghosts = [];
    this.find();
    this.listen();
    this.view = viewAtFirst();
    this.picture = root.querySelector(".picture");
    if (linked) fromLink(this);
    this.compute();
    this.restart();
    this.show();
    showView(this);
  }

  part(name) {
    return this.root.querySelector(`[data-part="${name}"]`);
  }

  all(selector) {
    return [...this.root.querySelectorAll(selector)];
  }

  initial() {
    const point = new Map(this.data.inputs.map((k) => [k, Float64Array.from(this.tape.nodes[k].start)]));
    const v = new Map();
    for (const [k, , value] of this.data.v) {
      const own = Float64Array.from(value.map(numberOf));
      v.set(k, v.has(k) ? v.get(k).map((x, i) => x + own[i]) : own);
    }
    return { point, v, cuts: new Map(), hooks: new Map(), rate: 0.1 };
  }

  copied(state) {
    const each = (map) => new Map([...map].map(([k, x]) => [k, x.slice()]));
    return { ...state, point: each(state.point), v: each(state.v), cuts: new Map(state.cuts), hooks: new Map(state.hooks) };
  }

  change(what, act) {
    // One entry of the history for all that is typed into one field.
    if (what !== this.last || !what) {
      this.past.push({ state: this.copied(this.state), losses: this.losses.slice() });
      this.before = this.loss;
    }
    if (this.past.length > 200) this.past.shift();
    this.last = what;
    act(this.state);
    this.at = null;
    this.guess = null;
    this.compute();
    this.restart();
    this.trend = [...this.trend, this.loss].slice(-40);
    this.show();
    this.announce();
  }

  undo() {
    const before = this.past.pop();
    if (!before) return;
    this.state = before.state;
    this.losses = before.losses;
    this.last = "";
    this.refresh();
  }

  reset() {
    this.past.push({ state: this.copied(this.state), losses: this.losses.slice() });
    this.state = this.initial();
    this.losses = [];
    this.last = "";
    this.refresh();
  }

  refresh() {
    stopPlaying(this);
    this.at = null;
    this.guess = null;
    this.before = undefined;
    this.compute();
    this.restart();
    this.show();
    this.announce();
  }

  setEntry(field, value) {
    const { node, entry, isV } = field;
    const what = `${isV ? "v" : "x"} ${node} ${entry}`;
    showGhost(this, field, what !== this.last);
    this.change(what, (state) => {
      (isV ? state.v : state.point).get(node)[entry] = this.nodes[node].single ? Math.fround(value) : value;
    });
  }

  compute() {
    this.values = this.tape.values(this.state.point);
    const v = new Map([...this.state.v].map(([k, x]) => [k, this.tape.kept(this.nodes[k], x)]));
    this.back = this.tape.reverse(this.values, v, this.state.cuts, this.state.hooks);
    // The derivatives themselves, whatever is cut from the graph.
    this.isAltered = this.state.cuts.size + this.state.hooks.size > 0;
    this.whole = this.isAltered ? this.tape.reverse(this.values, v, new Map(), new Map()) : this.back;
    this.loss = [...this.state.v].reduce((sum, [k, x]) => {
      const y = flat(this.values[k]);
      return sum + x.reduce((s, w, i) => s + (w === 0 && y.length > 1 ? 0 : w * y[i]), 0);
    }, 0);
    this.steps = this.timeline();
  }

  timeline() {
    const forward = this.nodes.flatMap((n, k) => (n.call && n.within < 0 ? [{ node: k }] : []));
    const backward = this.back.brought.flatMap((x, i) => (x === undefined || !this.tape.isShown(this.tape.passes[i]) ? [] : [{ pass: i }]));
    return [...forward, { seed: true }, ...backward];
  }

  get forwards() {
    return this.steps.findIndex((s) => s.seed);
  }

  restart() {
    this.calls = 1;
    this.grads = new Map([...this.tape.wrt].map((k) => [k, this.back.adjoints[k]]));
  }

  call() {
    this.calls += 1;
    for (const [k, before] of this.grads) {
      const own = this.back.adjoints[k];
      if (own === null) continue;
      this.grads.set(k, before === null ? own : typeof own === "number" ? before + own : before.map((x, i) => x + own[i]));
    }
    this.show();
    this.announce();
  }

  zero() {
    this.calls = 0;
    for (const [k, before] of this.grads) {
      if (before !== null) this.grads.set(k, typeof before === "number" ? 0 : new Float64Array(before.length));
    }
    this.show();
    this.announce();
  }

  get isDone() {
    return this.at === null || this.at >= this.steps.length;
  }

  find() {
    this.drawing = new Drawing(this, this.root, this.tape);
    this.insides = new Map(); // of the boxes that are open, by their keys
    this.gradMarks = this.drawing.marks("grad");
    for (const input of this.all("[data-input], [data-cotangent]")) addField(this, input);
    scrubBoxes(this);
    this.sliders = this.all("[data-slider]").map((e) => ({ element: e, node: Number(e.dataset.slider) }));
    this.heats = this.all("[data-heat]").map((element) => {
      const [kind, node] = element.dataset.heat.split(" ");
      return { element, kind, node: Number(node) };
    });
    this.large = this.all("[data-large]").map((e) => new Large(this, e));
  }

  show() {
    const seen = knownSoFar(this);
    for (const m of this.gradMarks) this.drawing.put(m, isWaiting(this, seen, m.node) ? null : this.grads.get(m.node));
    for (const field of this.fields.values()) showField(this, field);
    for (const slider of this.sliders) showSlider(this, slider);
    for (const large of this.large) large.show();
    for (const heat of this.heats) showHeat(this, heat, seen);
    this.draw(seen);
    showSteps(this);
    showAlarms(this);
    const words = this.calls > 1 ? say("calls", this.calls) : this.calls ? WORDS.oneCall : WORDS.noCalls;
    put(this.part("calls"), words);
    showHeadline(this);
    for (const button of this.all('[data-action="undo"]')) button.disabled = !this.past.length;
    this.later();
  }

  draw(seen) {
    // The numbers of the page and its graph, and of the boxes that are open.
    const { values, back, whole } = this;
    this.drawing.show({ seen, values, back, whole });
    showProduct(this, this.at ? this.steps[this.at - 1] : null);
    for (const inside of this.insides.values()) inside.show();
  }

  announce() {
    clearTimeout(this.saying);
    this.saying = setTimeout(() => {
      const values = this.outputs.slice(0, 4).map((k) => `${this.nodes[k].name} = ${shown(this.nodes[k], this.values[k])}`);
      const grads = [...this.grads].slice(0, 4).map(([k, g]) => `${this.nodes[k].name}.grad = ${shown(this.nodes[k], g)}`);
      put(this.part("live"), [...values, ...grads].join(", "));
    }, 300);
  }

  later() {
    // What is computed more than once for each change waits for the next frame.
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = null;
      showJacobian(this);
      showDescent(this);
      toLink(this);
      clearTimeout(this.resting);
      if (this.nodes.length <= MANY) this.rest();
      else this.resting = setTimeout(() => this.rest(), RESTING);
    });
  }

  rest() {
    // Paths and the curve take longer than a change of a large system may: they follow once it rests.
    showFocus(this);
    showPlot(this);
  }

  choose(k, entry = 0) {
    this.focus = k;
    this.entry = entry;
    this.draw(knownSoFar(this));
    this.later();
  }

  lossName() {
    // L, which may be the only output; what it is, where this output's v is no longer 1.
    const { v, scalar } = this.data;
    const weight = v.length === 1 && v[0][1] === scalar ? this.state.v.get(this.outputs[0])[0] : 1;
    return weight === 1 ? scalar : `${bracketed(short(weight))}·${scalar}`;
  }

  listen() {
    const actions = {
      reset: () => this.reset(), undo: () => this.undo(), call: () => this.call(), zero: () => this.zero(),
      first: () => goTo(this, 0), previous: () => stepBy(this, -1), next: () => nextStep(this), last: () => goTo(this, null), play: () => playSteps(this),
      forward: () => goTo(this, 0), backward: () => goTo(this, this.forwards),
      guess: () => { this.guessing = !this.guessing; this.guess = null; showSteps(this); },
      descend: () => descend(this, 1), "descend-many": () => descend(this, 10),
      command: () => copyText(this, commandOf(this)), pytorch: () => copyText(this, pytorchOf(this)), link: () => copyText(this, linkOf(this)),
      close: () => { this.part("copied").hidden = true; },
      ...viewActions(this),
    };
    listenView(this);
    this.root.querySelector("[data-guess]").addEventListener("keydown", (event) => {
      if (event.key === "Enter") takeGuess(this, event.target.value);
    });
    (this.linked ? document : this.root).addEventListener("keydown", (event) => this.key(event));
    for (const button of this.all("[data-action]")) {
      button.addEventListener("click", () => {
        if (this.timer && !["play", "zoom-in", "zoom-out", "fit", "present"].includes(button.dataset.action)) stopPlaying(this);
        actions[button.dataset.action]();
      });
    }
    this.root.addEventListener("click", (event) => this.click(event));
    this.root.addEventListener("keydown", (event) => {
      const box = event.target.closest?.("[data-box]");
      if (!box || !["Enter", " "].includes(event.key)) return;
      event.preventDefault();
      this.click(event);
    });
    for (const { element, node } of this.sliders) {
      element.addEventListener("input", () => this.setEntry({ node, entry: 0, isV: false }, Number(element.value)));
      element.addEventListener("change", () => {
        this.last = "";
        delete element.dataset.ready;
        showSlider(this, { element, node });
      });
    }
    const rate = this.part("rate");
    rate?.addEventListener("input", () => {
      const value = read(rate.value);
      rate.toggleAttribute("aria-invalid", value === null);
      if (value !== null) this.state.rate = value;
    });
    if (this.linked) window.addEventListener("hashchange", () => {
      if (location.hash !== this.hash) {
        this.state = this.initial();
        fromLink(this);
        this.refresh();
        showView(this);
      }
    });
  }

  click(event) {
    // A line or a box is what is in focus; a box that opens does, or closes.
    const chosen = event.target.closest("[data-box], [data-row]");
    if (!chosen || event.target.closest("input, label, canvas")) return;
    if (chosen.dataset.inside !== undefined) toggleBox(this, chosen);
    const inside = this.insides.get(chosen.closest("[data-card]")?.dataset.card);
    if (!inside || inside.tape === this.tape) this.choose(Number(chosen.dataset.row ?? chosen.dataset.node));
  }

  key(event) {
    // Space plays, the arrows step, anywhere but in what has these keys itself.
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.('input, textarea, select, canvas, [role="slider"]')) return;
    if (event.key === " " && event.target.closest?.("button, [tabindex], summary")) return;
    const act = { " ": () => playSteps(this), ArrowRight: () => nextStep(this), ArrowLeft: () => stepBy(this, -1) }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }
}
