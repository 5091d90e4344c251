// Where nan and infinity come up first, and the corners that the point lies on.

function showAlarms(page) {
  // Where nan and infinity come up first, in words; and the corners that the point lies on.
  const [told, corners] = [[], []];
  const bad = (x) => flat(x).find((e) => !Number.isFinite(e));
  const marked = new Set();
  page.nodes.forEach((n, k) => {
    const value = n.call ? bad(page.values[k]) : undefined;
    if (value === undefined || n.args.some((a) => bad(page.values[a]) !== undefined)) return;
    marked.add(k);
    told.push(say("arises", short(value), forwardLine(page, k)) + fixOf(n));
  });
  page.tape.passes.forEach((pass, i) => {
    const brought = page.back.brought[i];
    const value = brought === undefined ? undefined : bad(brought);
    if (value === undefined || bad(page.back.adjoints[pass.node]) !== undefined) return;
    if (bad(page.values[pass.node]) !== undefined && !marked.has(pass.node)) return;
    marked.add(pass.argument);
    const node = page.nodes[pass.node];
    told.push(say("arisesGrad", short(value), page.nodes[pass.argument].bar, backwardTerm(page, pass, i)) + reasonOf(page, pass, i) + fixOf(node));
  });
  for (const [k, argument, name, expression, taken, call] of page.data.corners) {
    const entry = flat(page.tape.called(call, { node: k }, page.values, null)).findIndex(Boolean);
    if (entry < 0) continue;
    const { shape, size } = page.nodes[argument];
    corners.push(!name ? say("cornerHere", expression, taken)
      : say("cornerSays", entryName(name, shape, entry % size), short(flat(page.values[argument])[entry % size]), expression, taken));
  }
  const noted = corners.length > 1 ? say("corners", corners.length, corners[0]) : corners.length ? say("corner", corners[0]) : "";
  put(page.part("corners"), page.at === null ? noted : "");
  page.part("corners").title = corners.join("\n");
  for (const { element, node } of [...page.drawing.boxes, ...page.drawing.rows]) flag(element, "alarm", marked.has(node));
  const list = page.part("alarms");
  const now = page.at === null ? told.slice(0, 4).map((text) => `! ${text}`) : [];
  if (list.dataset.told === now.join("\n")) return;
  list.dataset.told = now.join("\n");
  list.replaceChildren(...now.map((text) => make("li", {}, text)));
  list.hidden = !now.length;
}

function backwardTerm(page, pass, i) {
  const slope = page.tape.slope(pass, page.values);
  const brought = shown(page.nodes[pass.argument], page.back.brought[i]);
  if (slope === null) return `${pass.rule} = ${brought}`;
  return `${shown(page.nodes[pass.node], page.back.adjoints[pass.node])}·(${pass.rule} = ${short(flat(slope)[0])}) = ${brought}`;
}

function reasonOf(page, pass, i) {
  // The product that is not finite, and where: 0·inf, at sqrt(x), x = 0.
  const slope = page.tape.slope(pass, page.values);
  if (slope === null) return "";
  const entry = flat(page.back.brought[i]).findIndex((x) => !Number.isFinite(x));
  const of = (array) => flat(array)[flat(array).length > 1 ? entry : 0] ?? flat(array)[0];
  const [node, argument] = [page.nodes[pass.node], page.nodes[pass.argument]];
  const where = `${node.formula}, ${entryName(argument.name, argument.shape, entry)} = ${short(of(page.values[pass.argument]))}`;
  return say("reason", `${short(of(page.back.adjoints[pass.node]))}·${bracketed(short(of(slope)))}`, where);
}

function fixOf(node) {
  return node.fix ? say("fix", node.fix) : "";
}
