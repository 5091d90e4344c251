// What is copied: a link, a command, a script.

function changesOf(page) {
  const result = [];
  const compare = (name, shape, now, first) => {
    const different = [...now.keys()].filter((i) => !Object.is(now[i], first[i]));
    if (!different.length) return;
    if (!shape.length || different.length > 8) result.push([name, Array.from(now, typed).join(",")]);
    else for (const i of different) result.push([entryName(name, shape, i), typed(now[i])]);
  };
  for (const [k, now] of page.state.point) compare(page.nodes[k].name, page.nodes[k].shape, now, page.start.point.get(k));
  for (const [name, k] of page.byCotangent) compare(name, page.nodes[k].shape, page.state.v.get(k), page.start.v.get(k));
  for (const [k, kind] of page.state.cuts) result.push([`~${kind}`, page.nodes[k].name]);
  for (const [k, factor] of page.state.hooks) result.push([`~hook ${typed(factor)}`, page.nodes[k].name]);
  for (const key of page.insides.keys()) result.push(["~open", key]); // an outer one before what is in it
  if (page.view.zoom !== null) result.push(["~zoom", String(page.view.zoom)]);
  if (page.view.present) result.push(["~present", "on"]);
  return result;
}

function fragmentOf(page) {
  return changesOf(page).map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join("&");
}

function linkOf(page) {
  return `${location.href.split("#")[0]}#${fragmentOf(page)}`;
}

function toLink(page) {
  if (!page.linked) return;
  const write = () => {
    page.linking = null;
    const text = fragmentOf(page);
    if (text.length > 30000) return;
    page.hash = text ? `#${text}` : "";
    page.linkedAt = performance.now();
    if (location.hash === page.hash) return;
    try {
      history.replaceState(null, "", page.hash || location.href.split("#")[0]);
    } catch {
      page.linked = false; // a page inside of another, which has no address
    }
  };
  clearTimeout(page.linking);
  // Browsers take no more than some hundred addresses in a minute.
  if (performance.now() - (page.linkedAt ?? -1000) > 400) write();
  else page.linking = setTimeout(write, 400);
}

function fromLink(page) {
  closeBoxes(page);
  page.view = viewAtFirst();
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
    if (kind) linkedCut(page, kind, value);
    else if (name.startsWith("~")) linkedView(page, name, value);
    else linkedNumbers(page, name, value);
  }
  page.hash = location.hash;
}

function linkedCut(page, [, kind, factor], name) {
  const k = page.nodes.findIndex((n) => n.name === name && n.call && n.within < 0);
  if (k < 0) return;
  if (kind !== "hook") page.state.cuts.set(k, kind);
  else if (read(factor ?? "") !== null) page.state.hooks.set(k, read(factor));
}

function linkedView(page, name, value) {
  if (name === "~present") page.view.present = value === "on";
  if (name === "~zoom" && value === "fit") page.view.zoom = value;
  else if (name === "~zoom" && read(value) >= SMALLEST && read(value) <= LARGEST) page.view.zoom = read(value);
  if (name !== "~open") return;
  const box = page.root.querySelector(`.gg-node[data-inside="${CSS.escape(value)}"][aria-expanded="false"]`);
  if (box) openBox(page, box);
}

function linkedNumbers(page, name, text) {
  const numbers = text.split(",").map(read);
  if (numbers.includes(null)) return;
  const all = [...[...page.byName].map(([n, k]) => [n, k, page.state.point]), ...[...page.byCotangent].map(([n, k]) => [n, k, page.state.v])];
  for (const [own, k, map] of all) {
    const { size, shape } = page.nodes[k];
    if (own === name && numbers.length === size) map.set(k, Float64Array.from(numbers));
    else if (numbers.length === 1 && shape.length && name.startsWith(`${own}[`)) {
      const entry = entryOf(own, shape, name);
      if (entry >= 0) map.get(k)[entry] = numbers[0];
    }
  }
}

function entryOf(own, shape, name) {
  const index = name.slice(own.length + 1, -1).split(",").map(Number);
  if (index.length !== shape.length || index.some((i, axis) => !(Number.isInteger(i) && i >= 0 && i < shape[axis]))) return -1;
  return index.reduce((sum, i, axis) => sum * shape[axis] + i, 0);
}

function commandOf(page) {
  const literal = (k, array) => nested(page.nodes[k].shape, array, typed).replace(/ /g, "");
  const quote = (text) => (/[^\w.,=+-]/.test(text) ? `"${text}"` : text);
  const point = [...page.state.point].map(([k, x]) => `${page.nodes[k].name}=${literal(k, x)}`).join(",");
  const v = [...page.byCotangent].map(([name, k]) => [name.slice(0, -2), literal(k, page.state.v.get(k))]);
  const alone = page.data.v.length === 1;
  const weights = alone ? v[0][1] : v.map(([name, text]) => `${name}=${text}`).join(",");
  const single = alone && weights === "1";
  return `${page.data.command}${point ? ` --at ${quote(point)}` : ""}${single ? "" : ` --v=${quote(weights)}`}`;
}

function pytorchOf(page) {
  const { names, body } = page.data.pytorch;
  const number = (x) => (Number.isFinite(x) ? (/[.e]/.test(typed(x)) ? typed(x) : `${typed(x)}.0`) : `float("${typed(x)}")`);
  const tensor = (k, array) => `torch.tensor(${nested(page.nodes[k].shape, array, number)})`;
  const leaves = [...page.state.point].map(([k, x]) => {
    const text = tensor(k, x);
    return `${names[page.nodes[k].name]} = ${page.tape.wrt.has(k) ? `${text.slice(0, -1)}, requires_grad=True)` : text}`;
  });
  const outputs = [...page.byCotangent].map(([name, k]) => [names[name.slice(0, -2)], tensor(k, page.state.v.get(k))]);
  const call = `torch.autograd.backward([${outputs.map((o) => o[0]).join(", ")}], [${outputs.map((o) => o[1]).join(", ")}])`;
  const prints = [...page.tape.wrt].map((k) => names[page.nodes[k].name]).map((n) => `print("${n}.grad =", ${n}.grad)`);
  return ["import torch", "", "torch.set_default_dtype(torch.float64)", "", ...leaves, ...body, call, ...prints, ""].join("\n");
}

function copyText(page, text) {
  const [box, area] = [page.part("copied"), page.part("copied-text")];
  box.hidden = false;
  area.value = text;
  put(page.part("copied-title"), WORDS.copyThis);
  area.focus();
  area.select();
  if (IS_FRAMED) return; // where a sandbox forbids it: the text is selected
  navigator.clipboard?.writeText(text).then(() => put(page.part("copied-title"), WORDS.copied), () => {});
}
