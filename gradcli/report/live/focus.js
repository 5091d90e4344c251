// The node in focus, and J with v and vᵀJ.

function showFocus(page) {
  const panel = page.part("focus");
  const n = page.nodes[page.focus];
  if (!n) return;
  if (!page.isDone) {
    showFocusSoFar(page, panel, n);
    return;
  }
  const adjoint = page.back.adjoints[page.focus];
  const title = make("h3", {}, make("code", {}, n.name), " ", make("small", {}, `${WORDS[n.kind]}${n.shape.length ? `, ${n.shape.join("×")}` : ""}`));
  const lines = [];
  if (n.formula) lines.push([WORDS.formula, forwardLine(page, page.focus)]);
  else lines.push([WORDS.value, `${n.name} = ${shown(n, page.values[page.focus])}`]);
  const terms = termsOf(page, page.focus);
  const list = [];
  if (adjoint === null) list.push(say("noContribution", n.name));
  else if (!n.shape.length && !terms.some((t) => t.rule)) {
    const after = page.back.unhooked.has(page.focus) ? page.back.unhooked.get(page.focus) : adjoint;
    const many = terms.length > 6 ? [...terms.slice(0, 5), { symbols: "…", numbers: "…" }] : terms;
    const sides = [n.bar, many.map((t) => t.symbols).join(" + "), many.map((t) => t.numbers).join(" + ")];
    if (terms.length > 1) sides.push(terms.map((t) => bracketed(short(t.value[0]))).slice(0, 6).join(" + ") + (terms.length > 6 ? " + …" : ""));
    list.push([...sides, short(flat(after)[0])].filter((side, k, whole) => side !== whole[k - 1]).join(" = "));
  } else {
    list.push(...terms.slice(0, 8).map((t) => `${t.symbols} = ${t.numbers}`));
    if (terms.length > 8) list.push(say("termsMore", terms.length - 8));
    if (terms.length !== 1) list.push(`${n.bar} = ${shown(n, adjoint)}`);
  }
  lines.push([say("contributions", n.bar), ...list]);
  const body = make("dl", {}, ...lines.flatMap(([term, ...texts]) => [make("dt", {}, term), ...texts.map((t) => make("dd", {}, make("code", {}, t)))]));
  const parts = [title, body];
  if (n.shape.length && n.size <= SMALL) parts.push(entriesOf(page, page.focus, adjoint));
  parts.push(...pathList(page));
  if (n.call) parts.push(cutting(page, page.focus));
  replaceParts(panel, parts);
}

function showFocusSoFar(page, panel, n) {
  // What is known of the node at page step.
  const seen = knownSoFar(page);
  const adjoint = seen.back.adjoints[page.focus];
  const value = seen.known.has(page.focus) ? (n.formula ? forwardLine(page, page.focus) : `${n.name} = ${shown(n, page.values[page.focus])}`) : `${n.name} = ${n.formula}`;
  const lines = [[n.formula ? WORDS.formula : WORDS.value, value], [WORDS.adjoint, `${n.bar} = ${adjoint === null ? "…" : shown(n, adjoint)}`]];
  const body = make("dl", {}, ...lines.flatMap(([term, text]) => [make("dt", {}, term), make("dd", {}, make("code", {}, text))]));
  replaceParts(panel, [make("h3", {}, make("code", {}, n.name)), body]);
}

function entriesOf(page, k, adjoint) {
  const n = page.nodes[k];
  const columns = n.shape[n.shape.length - 1];
  const rows = Array.from({ length: n.size / columns }, (_, r) =>
    make("tr", {}, ...Array.from({ length: columns }, (_, c) => {
      const entry = r * columns + c;
      const name = entryName(n.name, n.shape, entry);
      const cell = [make("span", { class: "number", title: name }, short(flat(page.values[k])[entry]))];
      if (adjoint !== null) cell.push(make("span", { class: "number adjoint", title: `∂${page.data.scalar}/∂${name}` }, short(flat(adjoint)[entry])));
      return make("td", {}, ...cell);
    })));
  const caption = make("caption", {}, adjoint === null ? WORDS.value : `${WORDS.value}, ${WORDS.adjoint}`);
  return make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": n.name }, make("table", { class: "entries" }, caption, make("tbody", {}, ...rows)));
}

function pathList(page) {
  const k = page.focus;
  const result = pathsOf(page, k);
  const isLeaf = page.data.inputs.includes(k);
  const title = make("h4", {}, say(isLeaf ? "pathsTo" : "paths", page.nodes[k].name));
  if (result === null) return [title, make("p", { class: "quiet" }, WORDS.pathsArrays)];
  const { found, count } = result;
  if (!found.length || (count === 1 && found[0].way.length < 3)) return [];
  const items = found.map((p) => make("li", { "data-path": p.way.map((i) => page.nodes[i].name).join(" ") },
    make("code", {}, `${wayNames(page, p.way)}:  ${wayFactors(p.factors)} = ${short(p.value)}`)));
  const more = count - found.length;
  const rest = more > 0 ? [make("p", { class: "quiet" }, more < 1e6 ? say("pathsMore", more) : say("pathsMany", "1e6"))] : [];
  const total = isLeaf && count > 1 && page.back.adjoints[k] !== null
    ? [make("p", {}, make("code", {}, say("pathsTotal", short(flat(page.back.adjoints[k])[0]))))] : [];
  return [title, make("ol", { class: "paths" }, ...items), ...rest, ...total];
}

function wayNames(page, way) {
  const names = way.map((i) => page.nodes[i].name);
  return names.length <= 6 ? names.join(" → ") : [...names.slice(0, 2), say("pathNodes", names.length - 3), names.at(-1)].join(" → ");
}

function wayFactors(factors) {
  const texts = factors.map((x) => bracketed(short(x)));
  return texts.length <= 6 ? texts.join("·") : [...texts.slice(0, 2), "…", texts.at(-1)].join("·");
}

function cutting(page, k) {
  const n = page.nodes[k];
  const kind = page.state.hooks.has(k) ? "hook" : (page.state.cuts.get(k) ?? "plain");
  const set = (chosen, factor = 0.5) => page.change("", (state) => {
    state.cuts.delete(k);
    state.hooks.delete(k);
    if (chosen === "hook") state.hooks.set(k, factor);
    else if (chosen !== "plain") state.cuts.set(k, chosen);
  });
  const choices = ["plain", "detach", "no_grad", "hook"].map((c) =>
    make("button", { type: "button", "data-action": c, "aria-pressed": String(c === kind), onclick: () => set(c) }, WORDS[c]));
  const parts = [make("h4", {}, WORDS.cut), make("div", { class: "buttons", role: "group", "aria-label": WORDS.cut }, ...choices)];
  if (kind === "hook") {
    const factor = page.state.hooks.get(k);
    const field = make("input", { type: "text", class: "field", value: typed(factor), inputmode: "decimal", onchange: (e) => {
      const value = read(e.target.value);
      if (value !== null) set("hook", value);
    } });
    parts.push(make("p", {}, make("label", {}, `${say("hookFactor", n.name)} `, field)));
    const before = page.back.unhooked.get(k);
    if (before !== undefined) parts.push(make("p", { class: "said" }, say("hookSays", n.name, short(factor), shown(n, before), shown(n, page.back.adjoints[k]))));
  } else if (kind !== "plain") {
    const stopped = page.drawing.edges.filter(({ element }) => element.classList.contains("stopped")).length;
    parts.push(make("p", { class: "said" }, `${say(`${kind}Says`, n.name)} ${say("stopped", stopped)}`));
  }
  return make("div", { class: "cutting" }, ...parts);
}

function replaceParts(panel, parts) {
  // The element in focus keeps it, though what it stands in is made anew.
  const active = panel.contains(document.activeElement) ? document.activeElement : null;
  const all = (selector) => [...panel.querySelectorAll(selector)];
  const place = active ? all("button, input, [tabindex]").indexOf(active) : -1;
  panel.replaceChildren(...parts);
  if (place >= 0) all("button, input, [tabindex]")[place]?.focus();
}

function showJacobian(page) {
  const panel = page.part("jacobian");
  if (!panel) return;
  const wrt = page.data.inputs.filter((k) => page.tape.wrt.has(k));
  const columns = wrt.flatMap((k) => Array.from({ length: page.nodes[k].size }, (_, e) => [k, e]));
  const rows = page.outputs.flatMap((k) => Array.from({ length: page.nodes[k].size }, (_, e) => [k, e]));
  const name = ([k, e]) => entryName(page.nodes[k].name, page.nodes[k].shape, e);
  const cell = (text, more = {}) => make("td", { class: "number", ...more }, text);
  const head = make("tr", {}, make("th", { scope: "col" }, "v"), make("th", { scope: "col" }, "J"), ...columns.map((c) => make("th", { scope: "col" }, `∂/∂${name(c)}`)));
  const body = rows.map(([k, e], i) => {
    const one = oneHot(page, k, e);
    const line = columns.map(([x, j]) => {
      const number = one.adjoints[x] === null ? 0 : flat(one.adjoints[x])[j];
      const value = page.isDone ? short(number) : "…";
      const formula = page.data.jacobian[i]?.[columns.findIndex((c) => c[0] === x && c[1] === j)] ?? "";
      const plain = !formula || formula === value || read(formula) !== null;
      return make("td", { class: "number" }, plain ? value : make("span", { class: "formula" }, `${formula} = `), plain ? "" : value);
    });
    return make("tr", {}, cell(short(page.state.v.get(k)[e])), make("th", { scope: "row" }, name([k, e])), ...line);
  });
  const seen = knownSoFar(page);
  const product = ([x, j]) => (page.whole.adjoints[x] === null ? WORDS.none : short(flat(page.whole.adjoints[x])[j]));
  const below = columns.map((c) => cell(isWaiting(page, seen, c[0]) ? "…" : product(c)));
  const foot = make("tr", { class: "total" }, make("td", {}), make("th", { scope: "row" }, "vᵀJ"), ...below);
  replaceParts(panel, [make("table", { class: "jacobian" }, make("thead", {}, head), make("tbody", {}, ...body), make("tfoot", {}, foot))]);
}

function oneHot(page, k, entry) {
  const one = new Float64Array(page.nodes[k].size);
  one[entry] = 1;
  return page.tape.reverse(page.values, new Map([[k, page.tape.kept(page.nodes[k], one)]]), new Map(), new Map());
}
