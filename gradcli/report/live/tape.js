// The tape: values forwards, adjoints backwards, as far as steps have come.

class Tape {
  constructor(data, kernels) {
    this.kernels = kernels;
    this.nodes = data.nodes.map((n) => ({
      name: n.n, bar: n.b, kind: n.k, shape: n.s, size: n.s.reduce((a, b) => a * b, 1), single: Boolean(n.o),
      within: n.w ?? -1, fix: n.x ?? "", formula: n.f ?? "", args: n.a ?? [], call: n.c ?? null, start: n.v?.map(numberOf) ?? null,
    }));
    this.passes = data.passes.map((p) => ({
      node: p[0], argument: this.nodes[p[0]].args[p[1]], rule: p[2], contribution: p[3], slope: p[4],
    }));
    this.wrt = new Set(data.wrt);
    this.constants = this.nodes.map((n) => (n.call || !n.start ? null : this.kept(n, n.start)));
  }

  isShown(pass) {
    // Whether a pass is a step: one to an addition within a sum is a part of the sum's.
    return this.nodes[pass.argument].within < 0;
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
      if (this.isShown(pass)) made += 1;
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
