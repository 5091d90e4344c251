/* global WORDS, KERNELS */
// The live page: a system whose numbers can be changed.  KERNELS are functions that gradcli exports, one for each kind
// of operation and of its passes; everything here is about when they are called, and what is shown of their results.

const SIGNIFICANT = 6;
const SMALL = 64; // entries of an array that has a field for each
const SHOWN_PATHS = 5;
const MOST_LOOKED = 20000; // steps along paths
const MOST_TICKS = 60;
const PULSE = 300; // milliseconds along an edge
const DIVERGED = 1e6; // times the first loss
const ADJOINT = -1;
const RESULT = -2;

// Numbers and words

function say(key, ...values) {
  return WORDS[key].replace(/\{(\d)\}/g, (_, k) => String(values[k]));
}

function short(x) {
  if (Number.isNaN(x)) return "nan";
  if (!Number.isFinite(x)) return x > 0 ? "inf" : "-inf";
  if (x === 0) return "0";
  const size = Math.abs(x);
  const rounded = Number(x.toPrecision(SIGNIFICANT));
  if (size >= 1e-4 && Math.abs(rounded) < 10 ** SIGNIFICANT) return String(rounded);
  return rounded.toExponential().replace("e+", "e");
}

function typed(x) {
  // A number with all its digits, as gradcli and Python read it.
  if (Number.isNaN(x)) return "nan";
  if (!Number.isFinite(x)) return x > 0 ? "inf" : "-inf";
  return Object.is(x, -0) ? "-0.0" : String(x).replace("e+", "e");
}

function read(text) {
  const plain = text.trim().replace(/\u2212/g, "-").replace(/_/g, "").toLowerCase();
  const word = /^([+-]?)(inf|infinity|nan)$/.exec(plain);
  if (word) return word[2] === "nan" ? NaN : word[1] === "-" ? -Infinity : Infinity;
  const one = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/;
  const [above, below, ...more] = plain.split("/").map((part) => part.trim());
  if (more.length || !one.test(above) || (below !== undefined && !one.test(below))) return null;
  return below === undefined ? Number(above) : Number(above) / Number(below);
}

function bracketed(text) {
  return text.startsWith("-") ? `(${text})` : text;
}

const numberOf = (x) => (x === "NaN" ? NaN : x === "Infinity" ? Infinity : x === "-Infinity" ? -Infinity : x);

function entryName(name, shape, entry) {
  if (!shape.length) return name;
  const index = [];
  for (let axis = shape.length - 1, rest = entry; axis >= 0; axis--) {
    index.unshift(rest % shape[axis]);
    rest = Math.floor(rest / shape[axis]);
  }
  return `${name}[${index.join(",")}]`;
}

function nested(shape, texts) {
  if (!shape.length) return texts[0];
  const step = texts.length / shape[0];
  const rows = Array.from({ length: shape[0] }, (_, k) => texts.slice(k * step, (k + 1) * step));
  return `[${rows.map((row) => nested(shape.slice(1), row)).join(", ")}]`;
}

function summary(shape, array, letters = 60) {
  // An array as it is written, or its beginning.
  if (!shape.length) return short(array[0]);
  const texts = Array.from(array.slice(0, 12), short);
  const whole = array.length <= 12 ? nested(shape, texts) : "";
  if (whole && whole.length <= letters) return whole;
  let begin = texts[0];
  for (let k = 1; k < texts.length && begin.length + texts[k].length + 6 <= letters; k++) begin += `, ${texts[k]}`;
  return `[${begin}, …]`;
}

// The tape: values forwards, adjoints backwards

class Tape {
  constructor(data, kernels) {
    this.kernels = kernels;
    this.nodes = data.nodes.map((n) => ({
      name: n.n, bar: n.b, kind: n.k, shape: n.s, size: n.s.reduce((a, b) => a * b, 1), single: Boolean(n.o),
      formula: n.f ?? "", args: n.a ?? [], call: n.c ?? null, start: n.v?.map(numberOf) ?? null,
    }));
    this.passes = data.passes.map((p) => ({
      node: p[0], argument: this.nodes[p[0]].args[p[1]], rule: p[2], contribution: p[3], slope: p[4],
    }));
    this.wrt = new Set(data.wrt);
    this.constants = this.nodes.map((n) => (n.call || !n.start ? null : this.kept(n, n.start)));
  }

  kept(node, value) {
    // A single number as it is; an array as numbers in their order, rounded to float32 where the system is.
    if (!node.shape.length) {
      const number = Number(typeof value === "object" ? value[0] : value);
      return node.single ? Math.fround(number) : number;
    }
    const array = typeof value === "object" ? Float64Array.from(value) : new Float64Array(node.size).fill(Number(value));
    return node.single ? array.map(Math.fround) : array;
  }

  values(point) {
    const result = this.constants.slice();
    this.nodes.forEach((n, k) => {
      if (point.has(k)) result[k] = n.shape.length ? point.get(k) : point.get(k)[0];
      else if (n.call) result[k] = this.kept(n, this.kernels[n.call[0]](...n.call[1].map((i) => result[n.args[i]])));
    });
    return result;
  }

  called(call, pass, values, adjoint) {
    const args = this.nodes[pass.node].args;
    const reads = call[1].map((i) => (i === ADJOINT ? adjoint : i === RESULT ? values[pass.node] : values[args[i]]));
    return this.kernels[call[0]](...reads);
  }

  requiring(cuts) {
    // Which nodes require a gradient: as PyTorch, those that a leaf leads to, unless they are cut from the graph.
    const result = [];
    this.nodes.forEach((n, k) => {
      result.push(!cuts.has(k) && (n.call ? n.args.some((a) => result[a]) : this.wrt.has(k)));
    });
    return result;
  }

  // `most` passes are made at most; what they bring is in the order of the passes, undefined where nothing flows.
  reverse(values, v, cuts, hooks, most = Infinity) {
    const requires = this.requiring(cuts);
    const adjoints = new Array(this.nodes.length).fill(null);
    const unhooked = new Map(); // what a hook has changed
    const brought = new Array(this.passes.length);
    const add = (k, value) => {
      const one = this.kept(this.nodes[k], value);
      const before = adjoints[k];
      if (before === null) adjoints[k] = one;
      else adjoints[k] = this.kept(this.nodes[k], typeof one === "number" ? before + one : before.map((x, i) => x + one[i]));
    };
    const hooked = (k) => {
      if (!hooks.has(k) || unhooked.has(k) || adjoints[k] === null) return;
      unhooked.set(k, adjoints[k]);
      const factor = hooks.get(k);
      adjoints[k] = typeof adjoints[k] === "number" ? adjoints[k] * factor : adjoints[k].map((x) => x * factor);
    };
    for (const [k, value] of v) if (requires[k]) add(k, value);
    let made = 0;
    this.passes.forEach((pass, i) => {
      if (!requires[pass.node] || !requires[pass.argument] || adjoints[pass.node] === null || made >= most) return;
      made += 1;
      hooked(pass.node);
      brought[i] = this.kept(this.nodes[pass.argument], this.called(pass.contribution, pass, values, adjoints[pass.node]));
      add(pass.argument, brought[i]);
    });
    if (made < most) for (const k of hooks.keys()) hooked(k);
    return { adjoints, brought, unhooked, requires };
  }

  slope(pass, values) {
    return pass.slope ? this.called(pass.slope, pass, values, null) : null;
  }
}

const flat = (x) => (typeof x === "number" || typeof x === "boolean" ? [Number(x)] : x);
const plus = (a, b) => Array.from(a.length > b.length ? a : b, (_, k) => a[k % a.length] + b[k % b.length]);
const norm = (x) => Math.sqrt(flat(x).reduce((sum, e) => sum + e * e, 0));

function shown(node, value) {
  return value === null || value === undefined ? WORDS.none : summary(node.shape, flat(value));
}

// Elements of the page; text is only ever text

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
  if (element.textContent !== text) element.textContent = text;
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
    this.find();
    this.listen();
    const picture = root.querySelector(".picture");
    if (picture) picture.style.minWidth = `${picture.getAttribute("width")}px`; // sooner than tiny text
    if (linked) this.fromLink();
    this.compute();
    this.restart();
    this.show();
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

  // What is changed

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
    this.stop();
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
    const forward = this.nodes.flatMap((n, k) => (n.call ? [{ node: k }] : []));
    const backward = this.back.brought.flatMap((x, i) => (x === undefined ? [] : [{ pass: i }]));
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

  // Steps

  get isDone() {
    return this.at === null || this.at >= this.steps.length;
  }

  step(by) {
    const from = this.at;
    const last = this.steps.length;
    this.guess = null;
    this.at = this.at === null ? (by > 0 ? last : last - 1) : Math.min(last, Math.max(0, this.at + by));
    const step = this.at > 0 ? this.steps[this.at - 1] : null;
    if (step?.node !== undefined) this.focus = step.node;
    if (step?.pass !== undefined) this.focus = this.tape.passes[step.pass].argument;
    this.show();
    if (by === 1 && from !== null && step?.pass !== undefined) this.pulse(step.pass);
  }

  next() {
    // With guessing on, the number is asked for before it is shown.
    if (this.isDone) return;
    const target = this.guessing && this.guess === null ? this.target(this.steps[this.at]) : null;
    if (target === null) this.step(1);
    else {
      this.guess = target;
      this.stepBar();
      this.root.querySelector("[data-guess]").focus();
    }
  }

  target(step) {
    // What is computed in a step, where it is a single number: its name and the number.
    if (step.node !== undefined) {
      const n = this.nodes[step.node];
      return n.shape.length ? null : { name: `${n.name} = ${n.formula}`, value: flat(this.values[step.node])[0] };
    }
    if (step.pass === undefined) return null;
    const pass = this.tape.passes[step.pass];
    const [node, argument] = [this.nodes[pass.node], this.nodes[pass.argument]];
    if (node.shape.length || argument.shape.length) return null;
    return { name: `${node.bar}·∂${node.name}/∂${argument.name}`, value: flat(this.back.brought[step.pass])[0] };
  }

  guessed(text) {
    const value = read(text);
    if (value === null || this.guess === null) return;
    const right = Math.abs(value - this.guess.value) <= 0.005 * Math.max(Math.abs(this.guess.value), 1e-9);
    const said = right ? WORDS.guessRight : say("guessWrong", short(this.guess.value));
    this.step(1);
    put(this.part("guessed"), said);
    this.part("guess").hidden = false;
    this.root.querySelector("[data-guess]").hidden = true;
  }

  play() {
    if (this.timer) {
      this.stop();
      return;
    }
    if (this.isDone) this.at = 0;
    this.timer = setInterval(() => {
      this.step(1);
      if (this.isDone) this.stop();
    }, 1000);
    this.show();
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.stepBar();
  }

  go(to) {
    this.guess = null;
    this.at = to;
    this.show();
  }

  seen() {
    // What is known at this step: values of nodes, adjoints as far as they have come, gradients that are complete.
    if (this.at === null) return null;
    const known = new Set(this.nodes.keys());
    for (const s of this.steps.slice(this.at)) known.delete(s.node);
    const made = this.at - this.forwards - 1;
    const none = { adjoints: new Array(this.nodes.length).fill(null), brought: [] };
    const v = new Map([...this.state.v].map(([k, x]) => [k, this.tape.kept(this.nodes[k], x)]));
    const back = made < 0 ? none : this.tape.reverse(this.values, v, this.state.cuts, this.state.hooks, made);
    const waiting = new Set(this.steps.slice(this.at).flatMap((s) => (s.pass === undefined ? [] : [this.tape.passes[s.pass].argument])));
    return { known, back, waiting };
  }

  sentence() {
    const step = this.at === null ? null : this.steps[this.at - 1];
    if (this.at === null) return WORDS.stepAll;
    if (this.isDone) return say("stepEnd", [...this.grads].slice(0, 6).map(([k, g]) => `${this.nodes[k].name}.grad = ${shown(this.nodes[k], g)}`).join(", "));
    if (!step) return WORDS.stepStart;
    if (this.at === this.forwards) return WORDS.stepForwardDone;
    if (step.seed) {
      const seeds = [...this.state.v].map(([k, x]) => `${this.nodes[k].bar} = v = ${summary(this.nodes[k].shape, x)}`);
      return say("stepSeed", seeds.join(", "));
    }
    return step.node !== undefined ? this.forwardLine(step.node) : this.backwardLine(step.pass);
  }

  forwardLine(k) {
    const n = this.nodes[k];
    const sides = [n.name, n.formula];
    const numbers = this.inNumbers(n);
    if (numbers && numbers !== n.formula) sides.push(numbers);
    sides.push(shown(n, this.values[k]));
    return sides.join(" = ");
  }

  inNumbers(n) {
    // A formula with the numbers in place of the names, where they are single ones.
    const known = new Map(n.args.filter((a) => this.nodes[a].name).map((a) => [this.nodes[a].name, a]));
    if ([...known.values()].some((a) => this.nodes[a].shape.length)) return "";
    return n.formula.replace(/[\p{L}_][\p{L}\p{N}\p{M}_.]*(\[[\d,]*\])?/gu, (word, _, at) => {
      const plain = !known.has(word) || n.formula[at + word.length] === "(";
      return plain ? word : bracketed(short(flat(this.values[known.get(word)])[0]));
    });
  }

  backwardLine(i) {
    const pass = this.tape.passes[i];
    const [node, argument] = [this.nodes[pass.node], this.nodes[pass.argument]];
    const brought = shown(argument, this.back.brought[i]);
    const slope = this.tape.slope(pass, this.values);
    const now = this.seen().back.adjoints[pass.argument];
    let line = `${pass.rule} = ${brought}`;
    if (slope !== null && !node.shape.length) {
      const adjoint = short(flat(this.back.adjoints[pass.node])[0]);
      line = `${argument.bar} += ${node.bar}·∂${node.name}/∂${argument.name}`;
      line += ` = ${bracketed(adjoint)}·${bracketed(short(flat(slope)[0]))} = ${brought}`;
    } else if (slope !== null) {
      line = `${argument.bar} += ${node.bar}·(${pass.rule.slice(pass.rule.indexOf(" = ") + 3)}) = ${brought}`;
    }
    return this.terms(pass.argument).length > 1 ? `${line},  ${argument.bar} = ${shown(argument, now)}` : line;
  }

  // What an adjoint is the sum of

  terms(k) {
    const n = this.nodes[k];
    const result = [];
    if (this.state.v.has(k) && this.back.requires[k]) {
      const text = summary(n.shape, this.state.v.get(k));
      result.push({ symbols: say("seed"), numbers: text, value: flat(this.state.v.get(k)) });
    }
    this.tape.passes.forEach((pass, i) => {
      if (pass.argument !== k || this.back.brought[i] === undefined) return;
      const node = this.nodes[pass.node];
      const value = flat(this.back.brought[i]);
      const slope = this.tape.slope(pass, this.values);
      const adjoint = this.back.adjoints[pass.node];
      if (slope !== null && !node.shape.length) {
        const factors = [flat(adjoint)[0], flat(slope)[0]].map(short);
        result.push({ symbols: `${node.bar}·∂${node.name}/∂${n.name}`, numbers: `${bracketed(factors[0])}·${bracketed(factors[1])}`, value, pass: i });
      } else {
        const symbols = slope === null ? pass.rule : `${node.bar}·(${pass.rule.slice(pass.rule.indexOf(" = ") + 3)})`;
        result.push({ symbols, numbers: summary(n.shape, value), value, pass: i, rule: true });
      }
    });
    return result;
  }

  paths(k) {
    // The largest of the ways along which k is computed, best first, and their number; of a leaf, of those that lead to
    // it.  null where not all values are single numbers.
    const back = this.data.inputs.includes(k);
    const next = new Map();
    this.tape.passes.forEach((pass, i) => {
      if (this.back.brought[i] === undefined) return;
      const [from, to] = back ? [pass.argument, pass.node] : [pass.node, pass.argument];
      next.set(from, [...(next.get(from) ?? []), [i, to]]);
    });
    const order = this.reached(k, next).sort((a, b) => (back ? b - a : a - b));
    const [slopes, best, count] = [new Map(), new Map(), new Map()];
    const ends = (n) => (back ? this.state.v.has(n) : !next.has(n) && this.tape.wrt.has(n));
    const last = (n) => (back ? flat(this.state.v.get(n))[0] : 1);
    for (const n of order) {
      let [largest, ways] = ends(n) ? [Math.abs(last(n)), 1] : [0, 0];
      for (const [i, to] of next.get(n) ?? []) {
        const pass = this.tape.passes[i];
        const slope = this.tape.slope(pass, this.values);
        if (slope === null || this.nodes[pass.node].shape.length || this.nodes[pass.argument].shape.length) return null;
        slopes.set(i, flat(slope)[0]);
        largest = Math.max(largest, Math.abs(slopes.get(i)) * best.get(to));
        ways += count.get(to);
      }
      best.set(n, largest);
      count.set(n, ways);
    }
    // Best first: what is still to come along a way is at most `best`, which some way reaches.
    const found = [];
    const open = [{ at: k, from: null, factor: null, size: 1, most: best.get(k), depth: 0 }];
    for (let looked = 0; open.length && found.length < SHOWN_PATHS && looked < MOST_LOOKED; looked++) {
      let top = 0;
      open.forEach((p, j) => {
        if (p.most > open[top].most || (p.most === open[top].most && p.depth > open[top].depth)) top = j;
      });
      const [step] = open.splice(top, 1);
      if (step.isEnd) {
        found.push(this.path(step.from, back));
        continue;
      }
      const depth = step.depth + 1;
      if (ends(step.at) && step.from) open.push({ isEnd: true, from: step, most: step.size * Math.abs(last(step.at)), depth });
      for (const [i, to] of next.get(step.at) ?? []) {
        const size = step.size * Math.abs(slopes.get(i));
        open.push({ at: to, from: step, factor: slopes.get(i), size, most: size * best.get(to), depth });
      }
    }
    return { found, count: count.get(k) - (ends(k) ? 1 : 0) };
  }

  reached(k, next) {
    const seen = new Set([k]);
    for (const n of seen) for (const [, to] of next.get(n) ?? []) seen.add(to);
    return [...seen];
  }

  path(end, back) {
    // The nodes from the first to the last that is computed, last first, and the factors between them.
    const [way, factors] = [[], back ? [flat(this.state.v.get(end.at))[0]] : []];
    for (let step = end; step; step = step.from) {
      way.push(step.at);
      if (step.factor !== null) factors.push(step.factor);
    }
    if (!back) way.reverse();
    if (!back) factors.reverse();
    return { way, factors, value: factors.reduce((p, x) => p * x, 1) };
  }

  // Showing

  find() {
    const marks = (name) => this.all(`[data-${name}]`).map((element) => {
      const [node, entry] = [Number(element.dataset[name]), Number(element.dataset.entry ?? -1)];
      const { name: own, shape } = this.nodes[node];
      if (entry >= 0) {
        element.classList.add("number", name);
        if (!element.hasAttribute(`data-${name}-of`)) element.setAttribute(`data-${name}-of`, entryName(own, shape, entry));
      }
      return { element, node, entry };
    });
    this.valueMarks = marks("value");
    this.adjointMarks = marks("adjoint");
    this.gradMarks = marks("grad");
    this.slopeMarks = this.all("[data-slope]").map((e) => ({ element: e, passes: e.dataset.slope.split(" ").map(Number) }));
    this.edges = this.all("[data-passes]").map((e) => ({ element: e, line: e.querySelector("path"), passes: e.dataset.passes.split(" ").map(Number) }));
    this.boxes = this.all("[data-box]").map((e) => ({ element: e, node: Number(e.dataset.node) }));
    for (const { element } of this.boxes) {
      element.setAttribute("tabindex", "0");
      element.setAttribute("role", "button");
    }
    this.rows = this.all("[data-row]").map((e) => ({ element: e, node: Number(e.dataset.row) }));
    for (const input of this.all("[data-input], [data-cotangent]")) this.addField(input);
    this.sliders = this.all("[data-slider]").map((e) => ({ element: e, node: Number(e.dataset.slider) }));
    this.large = this.all("[data-large]").map((e) => new Large(this, e));
  }

  show() {
    const seen = this.seen();
    const of = (array, k, entry) => (entry < 0 ? summary(this.nodes[k].shape, flat(array), 26) : short(flat(array)[entry]));
    const mark = ({ element, node, entry }, array) => {
      const none = array === null || array === undefined;
      put(element, none ? (seen && this.at < this.steps.length ? "…" : WORDS.none) : of(array, node, entry));
      const single = !none && (entry >= 0 || !this.nodes[node].shape.length);
      if (single) element.dataset.number = String(flat(array)[Math.max(entry, 0)]);
      else delete element.dataset.number;
      element.classList.toggle("unknown", none);
    };
    for (const m of this.valueMarks) mark(m, seen && !seen.known.has(m.node) ? null : this.values[m.node]);
    for (const m of this.adjointMarks) mark(m, (seen ? seen.back : this.back).adjoints[m.node]);
    for (const m of this.gradMarks) mark(m, this.isWaiting(seen, m.node) ? null : this.grads.get(m.node));
    for (const field of this.fields.values()) this.showField(field);
    for (const slider of this.sliders) this.showSlider(slider);
    for (const large of this.large) large.show();
    this.showEdges(seen);
    this.stepBar();
    this.alarms();
    const words = this.calls > 1 ? say("calls", this.calls) : this.calls ? WORDS.oneCall : WORDS.noCalls;
    put(this.part("calls"), words);
    this.headline();
    for (const button of this.all('[data-action="undo"]')) button.disabled = !this.past.length;
    this.later();
  }

  headline() {
    // The loss, and what the last change did to it; unknown before its step.
    const known = this.at === null || this.at >= this.forwards;
    put(this.part("loss"), known ? this.lossText() : `${this.data.scalar} = …`);
    const by = this.before === undefined ? NaN : this.loss - this.before;
    const sign = by > 0 ? "▲" : by < 0 ? "▼" : "＝";
    put(this.part("trend"), !known ? "" : Number.isFinite(by) ? say("trendSays", sign, short(Math.abs(by))) : WORDS.trendNone);
    const finite = this.trend.filter(Number.isFinite);
    const [low, high] = [Math.min(...finite), Math.max(...finite)];
    const points = finite.map((y, k) => `${((100 * k) / Math.max(1, finite.length - 1)).toFixed(1)},${(high > low ? 22 - (20 * (y - low)) / (high - low) : 12).toFixed(1)}`);
    this.part("curve").replaceChildren(...(finite.length > 1 && known ? [make("svg:polyline", { points: points.join(" "), class: "graph" })] : []));
  }

  isWaiting(seen, k) {
    return Boolean(seen) && (this.at <= this.forwards || seen.waiting.has(k));
  }

  showField(field) {
    const { input, node, entry, isV } = field;
    const value = (isV ? this.state.v : this.state.point).get(node)[entry];
    input.dataset.number = String(value);
    const now = read(input.value);
    if (document.activeElement === input && now !== null && (Object.is(now, value) || Math.fround(now) === value)) return;
    if (document.activeElement === input && field.typing) return;
    const text = document.activeElement === input ? typed(value) : short(value);
    if (input.value !== text) input.value = text;
    input.removeAttribute("aria-invalid");
    input.setCustomValidity("");
  }

  showSlider({ element, node }) {
    const value = this.state.point.get(node)[0];
    let [low, high] = [Number(element.min), Number(element.max)];
    if (!(value >= low && value <= high) || element.dataset.ready === undefined) {
      const reach = Number.isFinite(4 * value) ? Math.max(2, 2 * Math.abs(value)) : 2;
      const middle = Number.isFinite(value) ? value : 0;
      [low, high] = [middle - reach, middle + reach].map((x) => Number(x.toPrecision(3)));
      element.min = low;
      element.max = high;
      element.step = "any";
      element.dataset.ready = "";
    }
    if (Number(element.value) !== value) element.value = value;
    element.setAttribute("aria-valuetext", short(value));
  }

  showEdges(seen) {
    const isMade = (i) => this.back.brought[i] !== undefined && (!seen || seen.back.brought[i] !== undefined);
    const contributions = this.back.brought.map((x, i) => (isMade(i) ? norm(x) : 0));
    const largest = Math.max(...contributions.filter(Number.isFinite), 1e-300);
    const current = this.at ? this.steps[this.at - 1] : null;
    for (const { element, line, passes } of this.edges) {
      const size = Math.max(...passes.map((i) => contributions[i]));
      const width = Number.isFinite(size) ? 1.2 + 4.3 * Math.sqrt(size / largest) : 5.5;
      line.style.strokeWidth = width.toFixed(2);
      element.classList.toggle("stopped", passes.every((i) => this.back.brought[i] === undefined));
      element.classList.toggle("severed", passes.some((i) => this.isSevered(i)));
      element.classList.toggle("ahead", Boolean(seen) && !seen.known.has(this.tape.passes[passes[0]].node));
      element.classList.toggle("current", Boolean(current) && passes.includes(current.pass));
    }
    this.product(current);
    for (const { element, passes } of this.slopeMarks) {
      const known = !seen || passes.some(isMade);
      const total = passes.map((i) => flat(this.tape.slope(this.tape.passes[i], this.values))).reduce(plus);
      put(element, known ? ` = ${total.length > 1 ? summary([total.length], total, 16) : short(total[0])}` : "");
    }
    for (const { element, node } of [...this.boxes, ...this.rows]) {
      const step = current && (current.node ?? (current.pass === undefined ? null : this.tape.passes[current.pass].argument));
      element.classList.toggle("ahead", Boolean(seen) && !seen.known.has(node));
      element.classList.toggle("current", step === node);
      element.classList.toggle("focused", node === this.focus);
      element.classList.toggle("cut", this.state.cuts.has(node) || this.state.hooks.has(node));
      if (element.dataset.box === undefined) continue;
      element.setAttribute("aria-pressed", node === this.focus);
      if (step === node) element.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
  }

  isSevered(i) {
    // Whether nothing passes since the node of a pass is cut from the graph, where something would.
    return this.isAltered && this.back.brought[i] === undefined && this.whole.brought[i] !== undefined;
  }

  edgeOf(i) {
    return this.edges.filter(({ passes }) => passes.includes(i));
  }

  product(step) {
    // The product of the current backward step, on its edge: 100·10 = 1000.
    this.root.querySelector(".product")?.remove();
    if (step?.pass === undefined || step === null) return;
    const [edge] = this.edgeOf(step.pass);
    const pass = this.tape.passes[step.pass];
    if (!edge || this.nodes[pass.node].shape.length) return;
    const slope = this.tape.slope(pass, this.values);
    const value = short(norm(this.back.brought[step.pass]) === 0 ? 0 : flat(this.back.brought[step.pass])[0]);
    if (slope === null || this.nodes[pass.argument].shape.length) return;
    const middle = edge.line.getPointAtLength?.(edge.line.getTotalLength() / 2) ?? { x: 0, y: 0 };
    const text = `${bracketed(short(flat(this.back.adjoints[pass.node])[0]))}·${bracketed(short(flat(slope)[0]))} = ${value}`;
    edge.element.parentNode.append(make("svg:text", { x: middle.x + 6, y: middle.y + 4, class: "product" }, text));
  }

  pulse(i) {
    // A dot that travels up the edges of a pass.
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const lines = this.edgeOf(i).map(({ line }) => line).filter((line) => line.getTotalLength);
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

  stepBar() {
    put(this.part("sentence"), this.guess ? say("guessAsk", this.guess.name) : this.sentence());
    this.part("guess").hidden = !this.guess;
    const field = this.root.querySelector("[data-guess]");
    field.hidden = false;
    if (this.guess) field.value = "";
    put(this.part("guessed"), "");
    const whole = this.steps.length;
    put(this.part("place"), this.at === null ? "" : say("stepOutOf", this.at, whole));
    const disable = (action, is) => { for (const b of this.all(`[data-action="${action}"]`)) b.disabled = is; };
    for (const b of this.all('[data-action="play"]')) put(b, this.timer ? WORDS.pause : WORDS.play);
    for (const b of this.all('[data-action="guess"]')) b.setAttribute("aria-pressed", this.guessing);
    disable("first", this.at === 0);
    disable("previous", this.at === 0);
    disable("next", this.isDone);
    disable("last", this.at === null);
    this.ticks("forward", 0, this.forwards);
    this.ticks("backward", this.forwards, whole);
  }

  ticks(part, from, to) {
    // A tick for each step of a pass, or for some of many; a click goes there.
    const panel = this.part(part);
    const every = Math.max(1, Math.ceil((to - from) / MOST_TICKS));
    const count = Math.ceil((to - from) / every);
    if (panel.childElementCount !== count) {
      panel.replaceChildren(...Array.from({ length: count }, (_, k) => {
        const at = Math.min(to, from + (k + 1) * every);
        return make("button", { type: "button", class: "tick", tabindex: "-1", "data-at": at, "aria-label": say("tick", at, part), onclick: () => this.go(at) });
      }));
    }
    for (const tick of panel.children) tick.classList.toggle("made", this.at === null || Number(tick.dataset.at) <= this.at);
  }

  alarms() {
    // Where nan and infinity come up first, in words; and the corners that the point lies on.
    const [told, corners] = [[], []];
    const bad = (x) => flat(x).find((e) => !Number.isFinite(e));
    const marked = new Set();
    this.nodes.forEach((n, k) => {
      const value = n.call ? bad(this.values[k]) : undefined;
      if (value === undefined || n.args.some((a) => bad(this.values[a]) !== undefined)) return;
      marked.add(k);
      told.push(say("arises", short(value), this.forwardLine(k)));
    });
    this.tape.passes.forEach((pass, i) => {
      const brought = this.back.brought[i];
      const value = brought === undefined ? undefined : bad(brought);
      if (value === undefined || bad(this.back.adjoints[pass.node]) !== undefined) return;
      if (bad(this.values[pass.node]) !== undefined && !marked.has(pass.node)) return;
      marked.add(pass.argument);
      told.push(say("arisesGrad", short(value), this.nodes[pass.argument].bar, this.backwardTerm(pass, i)));
    });
    for (const [k, argument, name, expression, taken, call] of this.data.corners) {
      const entry = flat(this.tape.called(call, { node: k }, this.values, null)).findIndex(Boolean);
      if (entry < 0) continue;
      const { shape, size } = this.nodes[argument];
      corners.push(!name ? say("cornerHere", expression, taken)
        : say("cornerSays", entryName(name, shape, entry % size), short(flat(this.values[argument])[entry % size]), expression, taken));
    }
    const noted = corners.length > 1 ? say("corners", corners.length, corners[0]) : corners.length ? say("corner", corners[0]) : "";
    put(this.part("corners"), this.at === null ? noted : "");
    this.part("corners").title = corners.join("\n");
    for (const { element, node } of [...this.boxes, ...this.rows]) element.classList.toggle("alarm", marked.has(node));
    const list = this.part("alarms");
    const now = this.at === null ? told.slice(0, 4).map((text) => `! ${text}`) : [];
    if (list.dataset.told === now.join("\n")) return;
    list.dataset.told = now.join("\n");
    list.replaceChildren(...now.map((text) => make("li", {}, text)));
    list.hidden = !now.length;
  }

  backwardTerm(pass, i) {
    const slope = this.tape.slope(pass, this.values);
    const brought = shown(this.nodes[pass.argument], this.back.brought[i]);
    if (slope === null) return `${pass.rule} = ${brought}`;
    return `${shown(this.nodes[pass.node], this.back.adjoints[pass.node])}·(${pass.rule} = ${short(flat(slope)[0])}) = ${brought}`;
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
      this.showFocus();
      this.showJacobian();
      this.showPlot();
      this.showDescent();
      this.toLink();
    });
  }

  // The node in focus

  choose(k, entry = 0) {
    this.focus = k;
    this.entry = entry;
    this.showEdges(this.seen());
    this.later();
  }

  showFocus() {
    const panel = this.part("focus");
    const n = this.nodes[this.focus];
    if (!n) return;
    if (!this.isDone) {
      this.showFocusSoFar(panel, n);
      return;
    }
    const adjoint = this.back.adjoints[this.focus];
    const title = make("h3", {}, make("code", {}, n.name), " ", make("small", {}, `${WORDS[n.kind]}${n.shape.length ? `, ${n.shape.join("×")}` : ""}`));
    const lines = [];
    if (n.formula) lines.push([WORDS.formula, this.forwardLine(this.focus)]);
    else lines.push([WORDS.value, `${n.name} = ${shown(n, this.values[this.focus])}`]);
    const terms = this.terms(this.focus);
    const list = [];
    if (adjoint === null) list.push(say("noContribution", n.name));
    else if (!n.shape.length && !terms.some((t) => t.rule)) {
      const after = this.back.unhooked.has(this.focus) ? this.back.unhooked.get(this.focus) : adjoint;
      const many = terms.length > 6 ? [...terms.slice(0, 5), { symbols: "…", numbers: "…" }] : terms;
      const sides = [n.bar, many.map((t) => t.symbols).join(" + "), many.map((t) => t.numbers).join(" + ")];
      if (terms.length > 1) sides.push(terms.map((t) => bracketed(short(t.value[0]))).slice(0, 6).join(" + ") + (terms.length > 6 ? " + …" : ""));
      list.push([...sides, short(flat(after)[0])].filter((side, k, whole) => side !== whole[k - 1]).join(" = "));
    } else {
      list.push(...terms.slice(0, 8).map((t) => `${t.symbols} = ${t.numbers}`));
      if (terms.length !== 1) list.push(`${n.bar} = ${shown(n, adjoint)}`);
    }
    lines.push([say("contributions", n.bar), ...list]);
    const body = make("dl", {}, ...lines.flatMap(([term, ...texts]) => [make("dt", {}, term), ...texts.map((t) => make("dd", {}, make("code", {}, t)))]));
    const parts = [title, body];
    if (n.shape.length && n.size <= SMALL) parts.push(this.entries(this.focus, adjoint));
    parts.push(...this.pathList());
    if (n.call) parts.push(this.cutting(this.focus));
    this.replace(panel, parts);
  }

  showFocusSoFar(panel, n) {
    // What is known of the node at this step.
    const seen = this.seen();
    const adjoint = seen.back.adjoints[this.focus];
    const value = seen.known.has(this.focus) ? (n.formula ? this.forwardLine(this.focus) : `${n.name} = ${shown(n, this.values[this.focus])}`) : `${n.name} = ${n.formula}`;
    const lines = [[n.formula ? WORDS.formula : WORDS.value, value], [WORDS.adjoint, `${n.bar} = ${adjoint === null ? "…" : shown(n, adjoint)}`]];
    const body = make("dl", {}, ...lines.flatMap(([term, text]) => [make("dt", {}, term), make("dd", {}, make("code", {}, text))]));
    this.replace(panel, [make("h3", {}, make("code", {}, n.name)), body]);
  }

  entries(k, adjoint) {
    const n = this.nodes[k];
    const columns = n.shape[n.shape.length - 1];
    const rows = Array.from({ length: n.size / columns }, (_, r) =>
      make("tr", {}, ...Array.from({ length: columns }, (_, c) => {
        const entry = r * columns + c;
        const name = entryName(n.name, n.shape, entry);
        const cell = [make("span", { class: "number", title: name }, short(flat(this.values[k])[entry]))];
        if (adjoint !== null) cell.push(make("span", { class: "number adjoint", title: `∂${this.data.scalar}/∂${name}` }, short(flat(adjoint)[entry])));
        return make("td", {}, ...cell);
      })));
    const caption = make("caption", {}, adjoint === null ? WORDS.value : `${WORDS.value}, ${WORDS.adjoint}`);
    return make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": n.name }, make("table", { class: "entries" }, caption, make("tbody", {}, ...rows)));
  }

  pathList() {
    const k = this.focus;
    const result = this.paths(k);
    const isLeaf = this.data.inputs.includes(k);
    const title = make("h4", {}, say(isLeaf ? "pathsTo" : "paths", this.nodes[k].name));
    if (result === null) return [title, make("p", { class: "quiet" }, WORDS.pathsArrays)];
    const { found, count } = result;
    if (!found.length || (count === 1 && found[0].way.length < 3)) return [];
    const items = found.map((p) => make("li", { "data-path": p.way.map((i) => this.nodes[i].name).join(" ") },
      make("code", {}, `${this.wayNames(p.way)}:  ${this.wayFactors(p.factors)} = ${short(p.value)}`)));
    const more = count - found.length;
    const rest = more > 0 ? [make("p", { class: "quiet" }, more < 1e6 ? say("pathsMore", more) : say("pathsMany", "1e6"))] : [];
    const total = isLeaf && count > 1 && this.back.adjoints[k] !== null
      ? [make("p", {}, make("code", {}, say("pathsTotal", short(flat(this.back.adjoints[k])[0]))))] : [];
    return [title, make("ol", { class: "paths" }, ...items), ...rest, ...total];
  }

  wayNames(way) {
    const names = way.map((i) => this.nodes[i].name);
    return names.length <= 6 ? names.join(" → ") : [...names.slice(0, 2), say("pathNodes", names.length - 3), names.at(-1)].join(" → ");
  }

  wayFactors(factors) {
    const texts = factors.map((x) => bracketed(short(x)));
    return texts.length <= 6 ? texts.join("·") : [...texts.slice(0, 2), "…", texts.at(-1)].join("·");
  }

  cutting(k) {
    const n = this.nodes[k];
    const kind = this.state.hooks.has(k) ? "hook" : (this.state.cuts.get(k) ?? "plain");
    const set = (chosen, factor = 0.5) => this.change("", (state) => {
      state.cuts.delete(k);
      state.hooks.delete(k);
      if (chosen === "hook") state.hooks.set(k, factor);
      else if (chosen !== "plain") state.cuts.set(k, chosen);
    });
    const choices = ["plain", "detach", "no_grad", "hook"].map((c) =>
      make("button", { type: "button", "data-action": c, "aria-pressed": String(c === kind), onclick: () => set(c) }, WORDS[c]));
    const parts = [make("h4", {}, WORDS.cut), make("div", { class: "buttons", role: "group", "aria-label": WORDS.cut }, ...choices)];
    if (kind === "hook") {
      const factor = this.state.hooks.get(k);
      const field = make("input", { type: "text", class: "field", value: typed(factor), inputmode: "decimal", onchange: (e) => {
        const value = read(e.target.value);
        if (value !== null) set("hook", value);
      } });
      parts.push(make("p", {}, make("label", {}, `${say("hookFactor", n.name)} `, field)));
      const before = this.back.unhooked.get(k);
      if (before !== undefined) parts.push(make("p", { class: "said" }, say("hookSays", n.name, short(factor), shown(n, before), shown(n, this.back.adjoints[k]))));
    } else if (kind !== "plain") {
      const stopped = this.edges.filter(({ element }) => element.classList.contains("stopped")).length;
      parts.push(make("p", { class: "said" }, `${say(`${kind}Says`, n.name)} ${say("stopped", stopped)}`));
    }
    return make("div", { class: "cutting" }, ...parts);
  }

  replace(panel, parts) {
    // The element in focus keeps it, though what it stands in is made anew.
    const active = panel.contains(document.activeElement) ? document.activeElement : null;
    const all = (selector) => [...panel.querySelectorAll(selector)];
    const place = active ? all("button, input, [tabindex]").indexOf(active) : -1;
    panel.replaceChildren(...parts);
    if (place >= 0) all("button, input, [tabindex]")[place]?.focus();
  }

  // J, v and vᵀJ

  showJacobian() {
    const panel = this.part("jacobian");
    if (!panel) return;
    const wrt = this.data.inputs.filter((k) => this.tape.wrt.has(k));
    const columns = wrt.flatMap((k) => Array.from({ length: this.nodes[k].size }, (_, e) => [k, e]));
    const rows = this.outputs.flatMap((k) => Array.from({ length: this.nodes[k].size }, (_, e) => [k, e]));
    const name = ([k, e]) => entryName(this.nodes[k].name, this.nodes[k].shape, e);
    const cell = (text, more = {}) => make("td", { class: "number", ...more }, text);
    const head = make("tr", {}, make("th", { scope: "col" }, "v"), make("th", { scope: "col" }, "J"), ...columns.map((c) => make("th", { scope: "col" }, `∂/∂${name(c)}`)));
    const body = rows.map(([k, e], i) => {
      const one = this.oneHot(k, e);
      const line = columns.map(([x, j]) => {
        const number = one.adjoints[x] === null ? 0 : flat(one.adjoints[x])[j];
        const value = this.isDone ? short(number) : "…";
        const formula = this.data.jacobian[i]?.[columns.findIndex((c) => c[0] === x && c[1] === j)] ?? "";
        const plain = !formula || formula === value || read(formula) !== null;
        return make("td", { class: "number" }, plain ? value : make("span", { class: "formula" }, `${formula} = `), plain ? "" : value);
      });
      return make("tr", {}, cell(short(this.state.v.get(k)[e])), make("th", { scope: "row" }, name([k, e])), ...line);
    });
    const seen = this.seen();
    const product = ([x, j]) => (this.whole.adjoints[x] === null ? WORDS.none : short(flat(this.whole.adjoints[x])[j]));
    const below = columns.map((c) => cell(this.isWaiting(seen, c[0]) ? "…" : product(c)));
    const foot = make("tr", { class: "total" }, make("td", {}), make("th", { scope: "row" }, "vᵀJ"), ...below);
    this.replace(panel, [make("table", { class: "jacobian" }, make("thead", {}, head), make("tbody", {}, ...body), make("tfoot", {}, foot))]);
  }

  oneHot(k, entry) {
    const one = new Float64Array(this.nodes[k].size);
    one[entry] = 1;
    return this.tape.reverse(this.values, new Map([[k, this.tape.kept(this.nodes[k], one)]]), new Map(), new Map());
  }

  // y against an input

  showPlot() {
    const panel = this.part("plot");
    const k = this.data.inputs.includes(this.focus) ? this.focus : (this.plotted ?? this.data.inputs[0]);
    if (k === undefined || !panel) return;
    if (!this.isDone) {
      this.replace(panel, [make("p", { class: "quiet" }, WORDS.hiddenNow)]);
      return;
    }
    if (k !== this.plotted) this.reach = null;
    this.plotted = k;
    const entry = k === this.focus ? this.entry : 0;
    const x = this.state.point.get(k)[entry];
    const started = performance.now();
    if (!this.reach || !(x > this.reach[0] && x < this.reach[1]) || this.reach[2] !== entry) {
      const reach = Number.isFinite(x) ? Math.max(2, 2 * Math.abs(x)) : 2;
      this.reach = [(Number.isFinite(x) ? x : 0) - reach, (Number.isFinite(x) ? x : 0) + reach, entry];
    }
    const [low, high] = this.reach;
    const point = new Map([...this.state.point].map(([i, a]) => [i, i === k ? a.slice() : a]));
    const at = (value) => {
      point.get(k)[entry] = value;
      const values = this.tape.values(point);
      return [...this.state.v].reduce((sum, [i, w]) => sum + w.reduce((s, u, j) => s + (u === 0 ? 0 : u * flat(values[i])[j]), 0), 0);
    };
    at(x);
    const cost = Math.max(0.01, performance.now() - started);
    const count = Math.max(20, Math.min(160, Math.floor(30 / cost)));
    const points = Array.from({ length: count + 1 }, (_, i) => low + ((high - low) * i) / count).map((u) => [u, at(u)]);
    const slope = (adjoint) => (adjoint === null ? 0 : flat(adjoint)[entry]);
    const [curve, passed] = [slope(this.whole.adjoints[k]), slope(this.back.adjoints[k])];
    this.drawPlot(panel, { k, entry, x, y: this.loss, slope: curve, passed, points, low, high });
  }

  drawPlot(panel, { k, entry, x, y, slope, passed, points, low, high }) {
    const [width, height, left, bottom] = [360, 220, 46, 26];
    const finite = [...points.map((p) => p[1]), y].filter(Number.isFinite).sort((a, b) => a - b);
    let [down, up] = [finite[0], finite.at(-1)];
    const [low3, high3] = [0.04, 0.96].map((share) => finite[Math.round(share * (finite.length - 1))]);
    if (up - down > 8 * (high3 - low3) && high3 > low3) [down, up] = [Math.min(low3, y), Math.max(high3, y)]; // without a pole
    if (!(up > down)) [down, up] = [(finite[0] ?? 0) - 1, (finite[0] ?? 0) + 1];
    const plotted = [this.lossName(), entryName(this.nodes[k].name, this.nodes[k].shape, entry), short(slope)];
    const title = this.isAltered ? say("plotTitleTwo", ...plotted, short(passed)) : say("plotTitle", ...plotted);
    if (!finite.length || !Number.isFinite(up - down) || !Number.isFinite(high - low)) {
      this.replace(panel, [make("p", { class: "title" }, title), make("p", { class: "quiet" }, WORDS.plotNotFinite)]);
      return;
    }
    const margin = 0.06 * (up - down);
    [down, up] = [down - margin, up + margin];
    const px = (u) => left + ((u - low) / (high - low)) * (width - left - 8);
    const py = (u) => 8 + ((up - u) / (up - down)) * (height - bottom - 8);
    let way = "";
    for (const [u, w] of points) way += Number.isFinite(w) ? `${way.endsWith("Z") || !way ? "M" : "L"}${px(u).toFixed(1)} ${py(w).toFixed(1)}` : way && !way.endsWith("Z") ? "Z" : "";
    way = way.replace(/Z/g, "");
    const name = entryName(this.nodes[k].name, this.nodes[k].shape, entry);
    const clip = `clip-${this.data.id}`;
    const line = (x1, y1, x2, y2, look) => make("svg:line", { x1, y1, x2, y2, class: look });
    const text = (tx, ty, content, anchor) => make("svg:text", { x: tx, y: ty, "text-anchor": anchor, class: "tick" }, content);
    const svg = make("svg:svg", { viewBox: `0 0 ${width} ${height}`, class: "curve", role: "slider", tabindex: "0", "aria-label": say("plotSlider", name), "aria-valuemin": low, "aria-valuemax": high, "aria-valuenow": x, "aria-valuetext": `${name} = ${short(x)}, ${this.lossName()} = ${short(y)}` },
      make("svg:clipPath", { id: clip }, make("svg:rect", { x: left, y: 4, width: width - left - 8, height: height - bottom - 4 })),
      line(left, height - bottom, width - 8, height - bottom, "axis"), line(left, 8, left, height - bottom, "axis"),
      text(left, height - 8, short(low), "start"), text(width - 8, height - 8, short(high), "end"), text((left + width) / 2, height - 8, name, "middle"),
      text(left - 6, 16, short(Number(up.toPrecision(3))), "end"), text(left - 6, height - bottom, short(Number(down.toPrecision(3))), "end"),
      make("svg:path", { d: way, class: "graph", "clip-path": `url(#${clip})` }));
    if (Number.isFinite(x) && Number.isFinite(y)) {
      const ends = [low, high].map((u) => py(y + slope * (u - x)));
      if (ends.every((end) => Math.abs(end) < 1e7)) {
        const tangent = line(px(low), ends[0], px(high), ends[1], "tangent");
        tangent.setAttribute("clip-path", `url(#${clip})`);
        svg.append(tangent);
      }
      svg.append(make("svg:circle", { cx: px(x), cy: py(y), r: 6, class: "dot" }));
    }
    const to = (event) => {
      const box = (panel.querySelector("svg") ?? svg).getBoundingClientRect();
      const u = low + (((event.clientX - box.left) * (width / box.width) - left) / (width - left - 8)) * (high - low);
      this.setEntry({ node: k, entry, isV: false }, Number(Math.min(high, Math.max(low, u)).toPrecision(4)));
    };
    svg.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      to(event);
      const move = (e) => to(e);
      const up = () => {
        window.removeEventListener("pointermove", move);
        this.last = "";
      };
      window.addEventListener("pointermove", move);
      window.addEventListener("pointerup", up, { once: true });
      window.addEventListener("pointercancel", up, { once: true });
    });
    svg.addEventListener("keydown", (event) => {
      const sign = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
      if (!sign) return;
      event.preventDefault();
      this.nudge({ node: k, entry, isV: false }, sign, event);
    });
    this.replace(panel, [make("p", { class: "title" }, title), svg]);
  }

  lossText() {
    // What L is, in numbers: 1·y0 + 10·y1.
    const terms = [...this.byCotangent].map(([name, k]) => {
      const v = this.state.v.get(k);
      const output = name.slice(0, -2);
      return this.nodes[k].shape.length ? `sum(v*${output})` : `${bracketed(short(v[0]))}·${output}`;
    });
    return `${this.data.scalar} = ${terms.slice(0, 8).join(" + ")}${terms.length > 8 ? " + …" : ""} = ${short(this.loss)}`;
  }

  lossName() {
    return this.data.scalar;
  }

  // Gradient descent

  showDescent() {
    const panel = this.part("losses");
    if (!panel) return;
    const rate = this.part("rate");
    if (document.activeElement !== rate) rate.value = typed(this.state.rate);
    put(this.part("update"), this.isDone ? this.stopped || this.updateLine() : "");
    if (this.losses.filter(Number.isFinite).length < 2) {
      this.replace(panel, []);
      return;
    }
    const [width, height] = [360, 90];
    const finite = this.losses.filter(Number.isFinite);
    const [low, high] = [Math.min(...finite), Math.max(...finite)];
    const at = (y, k) => `${(6 + ((width - 12) * k) / (this.losses.length - 1)).toFixed(1)},${(high > low ? 8 + ((high - y) / (high - low)) * (height - 16) : height / 2).toFixed(1)}`;
    const drawn = this.losses.map((y, k) => (Number.isFinite(y) ? at(y, k) : null)).filter((text) => text !== null);
    const title = say("losses", this.lossName(), this.losses.length - 1, short(this.losses[0]), short(this.losses.at(-1)));
    const svg = make("svg:svg", { viewBox: `0 0 ${width} ${height}`, class: "curve", role: "img", "aria-label": title }, make("svg:polyline", { points: drawn.join(" "), class: "graph" }),
      ...drawn.slice(-1).map((p) => make("svg:circle", { cx: p.split(",")[0], cy: p.split(",")[1], r: 4, class: "dot" })));
    this.replace(panel, [make("p", { class: "title" }, title), svg]);
  }

  moving() {
    return new Set(this.all("[data-moves]").filter((e) => e.checked).map((e) => Number(e.dataset.moves)));
  }

  updateLine() {
    // The next step as arithmetic: x0 = 1 - 0.1·26 = -1.6.
    const lines = [...this.moving()].slice(0, 3).flatMap((k) => {
      const [n, g] = [this.nodes[k], this.back.adjoints[k]];
      if (g === null) return [];
      const [x, slope] = [this.state.point.get(k)[0], flat(g)[0]];
      const name = entryName(n.name, n.shape, 0);
      return [say("descentLine", name, short(x), short(this.state.rate), bracketed(short(slope)), short(x - this.state.rate * slope))];
    });
    return lines.join(",  ");
  }

  descend(times) {
    const moving = this.moving();
    this.stopped = "";
    this.change("", (state) => {
      if (!this.losses.length) this.losses.push(this.loss);
      for (let i = 0; i < times; i++) {
        for (const k of moving) {
          const gradient = this.back.adjoints[k];
          if (gradient === null) continue;
          const next = state.point.get(k).map((x, e) => x - state.rate * flat(gradient)[e]);
          state.point.set(k, this.nodes[k].single ? next.map(Math.fround) : next);
        }
        this.compute();
        this.losses.push(this.loss);
        if (Number.isFinite(this.loss) && Math.abs(this.loss) <= DIVERGED * Math.max(1, Math.abs(this.losses[0]))) continue;
        this.stopped = say("descentStopped", this.losses.length - 1, this.lossName(), short(this.loss));
        break;
      }
    });
  }

  // Fields

  addField(input) {
    const isV = input.dataset.cotangent !== undefined;
    const field = { input, isV, node: Number(input.dataset.node), entry: Number(input.dataset.entry ?? 0), typing: false };
    this.fields.set(input, field);
    const said = isV ? say("cotangent", input.dataset.cotangent) : input.dataset.input;
    input.classList.add("field");
    for (const [name, value] of Object.entries({ type: "text", inputmode: "decimal", autocomplete: "off", spellcheck: "false", "aria-label": said })) {
      input.setAttribute(name, value);
    }
    const take = () => {
      const value = read(input.value);
      const now = (isV ? this.state.v : this.state.point).get(field.node)[field.entry];
      if (document.activeElement !== input && input.value === short(now)) return; // as it is shown, rounded
      if (value === null) {
        input.setAttribute("aria-invalid", "true");
        input.setCustomValidity(say("notNumber", input.value.slice(0, 40))); // told beside the field, on Enter
        return;
      }
      input.removeAttribute("aria-invalid");
      input.setCustomValidity("");
      if (!Object.is(value, (isV ? this.state.v : this.state.point).get(field.node)[field.entry])) this.setEntry(field, value);
    };
    input.addEventListener("input", () => {
      field.typing = true;
      take();
    });
    input.addEventListener("change", () => {
      take();
      field.typing = false;
      this.last = "";
      if (read(input.value) === null) put(this.part("live"), say("notNumber", input.value.slice(0, 40)));
    });
    input.addEventListener("blur", () => {
      field.typing = false;
      if (input.value) this.showField(field); // one that was emptied is about to be filled
    });
    input.addEventListener("focus", () => {
      if (input.value) this.showField(field); // with all its digits
      this.choose(field.node, field.entry);
    });
    input.addEventListener("keydown", (event) => {
      const sign = { ArrowUp: 1, ArrowDown: -1 }[event.key];
      if (event.key === "Enter") {
        take();
        input.reportValidity();
        input.select();
      }
      if (!sign) return;
      event.preventDefault();
      this.nudge(field, sign, event);
    });
    input.addEventListener("wheel", (event) => {
      if (document.activeElement !== input) return;
      event.preventDefault();
      this.nudge(field, event.deltaY < 0 ? 1 : -1, event);
    }, { passive: false });
    const label = this.root.querySelector(`label[for="${input.id}"]`);
    if (label) this.drag(label, field);
  }

  nudge(field, sign, event) {
    const value = (field.isV ? this.state.v : this.state.point).get(field.node)[field.entry];
    const first = (field.isV ? this.start.v : this.start.point).get(field.node)[field.entry];
    const size = Math.max(Math.abs(first), Math.abs(value) / 10);
    const unit = Number.isFinite(size) && size > 0 ? 10 ** Math.min(6, Math.max(-6, Math.floor(Math.log10(size)) - 1)) : 0.1;
    const step = Math.min(unit, 0.1 * 10 ** Math.max(0, Math.floor(Math.log10(size || 1)))) * (event.shiftKey ? 10 : event.altKey ? 0.1 : 1);
    field.typing = false;
    if (field.input) field.input.value = "";
    this.setEntry(field, Number(((Number.isFinite(value) ? value : 0) + sign * step).toPrecision(12)));
  }

  drag(label, field) {
    label.addEventListener("pointerdown", (event) => {
      let [from, moved] = [event.clientX, false];
      const move = (e) => {
        const steps = Math.trunc((e.clientX - from) / 6);
        if (!steps) return;
        moved = true;
        from += 6 * steps;
        for (let k = 0; k < Math.abs(steps); k++) this.nudge(field, Math.sign(steps), e);
      };
      const up = () => {
        window.removeEventListener("pointermove", move);
        if (moved) this.last = "";
      };
      window.addEventListener("pointermove", move);
      window.addEventListener("pointerup", up, { once: true });
      window.addEventListener("pointercancel", up, { once: true });
      event.preventDefault();
      field.input.focus();
    });
  }

  listen() {
    const actions = {
      reset: () => this.reset(), undo: () => this.undo(), call: () => this.call(), zero: () => this.zero(),
      first: () => this.go(0), previous: () => this.step(-1), next: () => this.next(), last: () => this.go(null), play: () => this.play(),
      forward: () => this.go(0), backward: () => this.go(this.forwards),
      guess: () => { this.guessing = !this.guessing; this.guess = null; this.stepBar(); },
      descend: () => this.descend(1), "descend-many": () => this.descend(10),
      command: () => this.copy(this.command()), pytorch: () => this.copy(this.pytorch()), link: () => this.copy(this.link()),
      close: () => { this.part("copied").hidden = true; },
    };
    this.root.querySelector("[data-guess]").addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.guessed(event.target.value);
    });
    (this.linked ? document : this.root).addEventListener("keydown", (event) => this.key(event));
    for (const button of this.all("[data-action]")) {
      button.addEventListener("click", () => {
        if (this.timer && !["play"].includes(button.dataset.action)) this.stop();
        actions[button.dataset.action]();
      });
    }
    for (const { element, node } of [...this.boxes, ...this.rows]) {
      element.addEventListener("click", (event) => {
        if (!event.target.closest("input, label, canvas")) this.choose(node);
      });
      element.addEventListener("keydown", (event) => {
        if (element.dataset.box === undefined || !["Enter", " "].includes(event.key)) return;
        event.preventDefault();
        this.choose(node);
      });
    }
    for (const { element, node } of this.sliders) {
      element.addEventListener("input", () => this.setEntry({ node, entry: 0, isV: false }, Number(element.value)));
      element.addEventListener("change", () => {
        this.last = "";
        delete element.dataset.ready;
        this.showSlider({ element, node });
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
        this.fromLink();
        this.refresh();
      }
    });
  }

  key(event) {
    // Space plays, the arrows step, anywhere but in what has these keys itself.
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.('input, textarea, select, canvas, [role="slider"]')) return;
    if (event.key === " " && event.target.closest?.("button, [tabindex], summary")) return;
    const act = { " ": () => this.play(), ArrowRight: () => this.next(), ArrowLeft: () => this.step(-1) }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  // What is copied

  changes() {
    const result = [];
    const compare = (name, shape, now, first) => {
      const different = [...now.keys()].filter((i) => !Object.is(now[i], first[i]));
      if (!different.length) return;
      if (!shape.length || different.length > 8) result.push([name, Array.from(now, typed).join(",")]);
      else for (const i of different) result.push([entryName(name, shape, i), typed(now[i])]);
    };
    for (const [k, now] of this.state.point) compare(this.nodes[k].name, this.nodes[k].shape, now, this.start.point.get(k));
    for (const [name, k] of this.byCotangent) compare(name, this.nodes[k].shape, this.state.v.get(k), this.start.v.get(k));
    for (const [k, kind] of this.state.cuts) result.push([`~${kind}`, this.nodes[k].name]);
    for (const [k, factor] of this.state.hooks) result.push([`~hook ${typed(factor)}`, this.nodes[k].name]);
    return result;
  }

  fragment() {
    return this.changes().map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join("&");
  }

  link() {
    return `${location.href.split("#")[0]}#${this.fragment()}`;
  }

  toLink() {
    if (!this.linked) return;
    const write = () => {
      this.linking = null;
      const text = this.fragment();
      if (text.length > 30000) return;
      this.hash = text ? `#${text}` : "";
      this.linkedAt = performance.now();
      if (location.hash === this.hash) return;
      try {
        history.replaceState(null, "", this.hash || location.href.split("#")[0]);
      } catch {
        this.linked = false; // a page inside of another, which has no address
      }
    };
    clearTimeout(this.linking);
    // Browsers take no more than some hundred addresses in a minute.
    if (performance.now() - (this.linkedAt ?? -1000) > 400) write();
    else this.linking = setTimeout(write, 400);
  }

  fromLink() {
    for (const part of location.hash.slice(1).split("&")) {
      const [name, value] = part.split("=", 2).map((text) => {
        try {
          return decodeURIComponent(text);
        } catch {
          return "";
        }
      });
      if (!name || value === undefined) continue;
      const kind = /^~(detach|no_grad|hook)(?: (.+))?$/.exec(name);
      if (kind) this.linkedCut(kind, value);
      else this.linkedNumbers(name, value);
    }
    this.hash = location.hash;
  }

  linkedCut([, kind, factor], name) {
    const k = this.nodes.findIndex((n) => n.name === name && n.call);
    if (k < 0) return;
    if (kind !== "hook") this.state.cuts.set(k, kind);
    else if (read(factor ?? "") !== null) this.state.hooks.set(k, read(factor));
  }

  linkedNumbers(name, text) {
    const numbers = text.split(",").map(read);
    if (numbers.includes(null)) return;
    const all = [...[...this.byName].map(([n, k]) => [n, k, this.state.point]), ...[...this.byCotangent].map(([n, k]) => [n, k, this.state.v])];
    for (const [own, k, map] of all) {
      const { size, shape } = this.nodes[k];
      if (own === name && numbers.length === size) map.set(k, Float64Array.from(numbers));
      else if (numbers.length === 1 && shape.length && name.startsWith(`${own}[`)) {
        const entry = this.entryOf(own, shape, name);
        if (entry >= 0) map.get(k)[entry] = numbers[0];
      }
    }
  }

  entryOf(own, shape, name) {
    const index = name.slice(own.length + 1, -1).split(",").map(Number);
    if (index.length !== shape.length || index.some((i, axis) => !(Number.isInteger(i) && i >= 0 && i < shape[axis]))) return -1;
    return index.reduce((sum, i, axis) => sum * shape[axis] + i, 0);
  }

  command() {
    const literal = (k, array) => nested(this.nodes[k].shape, Array.from(array, typed)).replace(/ /g, "");
    const quote = (text) => (/[^\w.,=+-]/.test(text) ? `"${text}"` : text);
    const point = [...this.state.point].map(([k, x]) => `${this.nodes[k].name}=${literal(k, x)}`).join(",");
    const v = [...this.byCotangent].map(([name, k]) => [name.slice(0, -2), literal(k, this.state.v.get(k))]);
    const alone = this.data.v.length === 1;
    const weights = alone ? v[0][1] : v.map(([name, text]) => `${name}=${text}`).join(",");
    const single = alone && weights === "1";
    return `${this.data.command}${point ? ` --at ${quote(point)}` : ""}${single ? "" : ` --v=${quote(weights)}`}`;
  }

  pytorch() {
    const { names, body } = this.data.pytorch;
    const number = (x) => (Number.isFinite(x) ? (/[.e]/.test(typed(x)) ? typed(x) : `${typed(x)}.0`) : `float("${typed(x)}")`);
    const tensor = (k, array) => `torch.tensor(${nested(this.nodes[k].shape, Array.from(array, number))})`;
    const leaves = [...this.state.point].map(([k, x]) => {
      const text = tensor(k, x);
      return `${names[this.nodes[k].name]} = ${this.tape.wrt.has(k) ? `${text.slice(0, -1)}, requires_grad=True)` : text}`;
    });
    const outputs = [...this.byCotangent].map(([name, k]) => [names[name.slice(0, -2)], tensor(k, this.state.v.get(k))]);
    const call = `torch.autograd.backward([${outputs.map((o) => o[0]).join(", ")}], [${outputs.map((o) => o[1]).join(", ")}])`;
    const prints = [...this.tape.wrt].map((k) => names[this.nodes[k].name]).map((n) => `print("${n}.grad =", ${n}.grad)`);
    return ["import torch", "", "torch.set_default_dtype(torch.float64)", "", ...leaves, ...body, call, ...prints, ""].join("\n");
  }

  copy(text) {
    const [box, area] = [this.part("copied"), this.part("copied-text")];
    box.hidden = false;
    area.value = text;
    put(this.part("copied-title"), WORDS.copyThis);
    area.focus();
    area.select();
    navigator.clipboard?.writeText(text).then(() => put(this.part("copied-title"), WORDS.copied), () => {});
  }
}

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
      const entry = page.entryOf("", n.shape, `[${this.index.value}]`);
      if (entry >= 0) this.select(entry);
      else this.index.setAttribute("aria-invalid", "true");
    });
    this.canvas?.addEventListener("click", (event) => this.click(event));
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

  click(event) {
    const { c, h, w, at } = this.grid;
    const box = this.canvas.getBoundingClientRect();
    const [i, j] = [Math.floor(((event.clientY - box.top) / box.height) * h), Math.floor(((event.clientX - box.left) / box.width) * w)];
    const entry = at(0, Math.min(h - 1, i), Math.min(w - 1, j));
    const array = this.page.state.point.get(this.node);
    const [low, high] = this.range(array);
    this.select(entry);
    const value = array[entry] > (low + high) / 2 ? low : high;
    for (let k = 0; k < c; k++) this.page.setEntry({ node: this.node, entry: at(k, i, j), isV: false }, value);
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

function start() {
  const roots = [...document.querySelectorAll("[data-live]")];
  const open = (root) => {
    if (root.dataset.ready !== undefined) return;
    root.dataset.ready = "";
    const data = JSON.parse(document.getElementById(root.dataset.live).textContent);
    root.page = new Page(root, data, KERNELS, roots.length === 1);
  };
  for (const root of roots) {
    const folded = root.closest("details:not([open])");
    if (folded) folded.addEventListener("toggle", () => open(root), { once: true });
    else open(root);
  }
}

if (typeof document !== "undefined") start();
