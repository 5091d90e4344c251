// What an adjoint is the sum of, and the paths along which it came.

function termsOf(page, k) {
  const n = page.nodes[k];
  const result = [];
  if (page.state.v.has(k) && page.back.requires[k]) {
    const text = summary(n.shape, page.state.v.get(k));
    result.push({ symbols: say("seed"), numbers: text, value: flat(page.state.v.get(k)) });
  }
  page.tape.passes.forEach((pass, i) => {
    if (pass.argument !== k || page.back.brought[i] === undefined) return;
    const node = page.nodes[pass.node];
    const value = flat(page.back.brought[i]);
    const slope = page.tape.slope(pass, page.values);
    const adjoint = page.back.adjoints[pass.node];
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

function pathsOf(page, k) {
  // The largest of the ways along which k is computed, best first, and their number; of a leaf, of those that lead to
  // it.  null where not all values are single numbers.
  const back = page.data.inputs.includes(k);
  const next = new Map();
  page.tape.passes.forEach((pass, i) => {
    if (page.back.brought[i] === undefined) return;
    const [from, to] = back ? [pass.argument, pass.node] : [pass.node, pass.argument];
    next.set(from, [...(next.get(from) ?? []), [i, to]]);
  });
  const order = reachedFrom(k, next).sort((a, b) => (back ? b - a : a - b));
  const [slopes, best, count] = [new Map(), new Map(), new Map()];
  const ends = (n) => (back ? page.state.v.has(n) : !next.has(n) && page.tape.wrt.has(n));
  const last = (n) => (back ? flat(page.state.v.get(n))[0] : 1);
  for (const n of order) {
    let [largest, ways] = ends(n) ? [Math.abs(last(n)), 1] : [0, 0];
    for (const [i, to] of next.get(n) ?? []) {
      const pass = page.tape.passes[i];
      const slope = page.tape.slope(pass, page.values);
      if (slope === null || page.nodes[pass.node].shape.length || page.nodes[pass.argument].shape.length) return null;
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
      found.push(pathOf(page, step.from, back));
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

function reachedFrom(k, next) {
  const seen = new Set([k]);
  for (const n of seen) for (const [, to] of next.get(n) ?? []) seen.add(to);
  return [...seen];
}

function pathOf(page, end, back) {
  // The nodes from the first to the last that is computed, last first, and the factors between them.
  const [way, factors] = [[], back ? [flat(page.state.v.get(end.at))[0]] : []];
  for (let step = end; step; step = step.from) {
    // Within a sum, slopes are 1.
    const into = back ? step.from?.at : step.at;
    if (page.nodes[step.at].within < 0) way.push(step.at);
    if (step.factor !== null && page.nodes[into].within < 0) factors.push(step.factor);
  }
  if (!back) way.reverse();
  if (!back) factors.reverse();
  return { way, factors, value: factors.reduce((p, x) => p * x, 1) };
}
