// Steps: what is known at each, its sentence, and the numbers that are guessed before they are shown.

function stepBy(page, by) {
  const from = page.at;
  const last = page.steps.length;
  page.guess = null;
  page.at = page.at === null ? (by > 0 ? last : last - 1) : Math.min(last, Math.max(0, page.at + by));
  const step = page.at > 0 ? page.steps[page.at - 1] : null;
  if (step?.node !== undefined) page.focus = step.node;
  if (step?.pass !== undefined) page.focus = page.tape.passes[step.pass].argument;
  page.show();
  if (by === 1 && from !== null && step?.pass !== undefined) showPulse(page, step.pass);
}

function nextStep(page) {
  // With guessing on, the number is asked for before it is shown.
  if (page.isDone) return;
  const target = page.guessing && page.guess === null ? targetOf(page, page.steps[page.at]) : null;
  if (target === null) stepBy(page, 1);
  else {
    page.guess = target;
    showSteps(page);
    page.root.querySelector("[data-guess]").focus();
  }
}

function targetOf(page, step) {
  // What is computed in a step, where it is a single number: its name and the number.
  if (step.node !== undefined) {
    const n = page.nodes[step.node];
    return n.shape.length ? null : { name: `${n.name} = ${n.formula}`, value: flat(page.values[step.node])[0] };
  }
  if (step.pass === undefined) return null;
  const pass = page.tape.passes[step.pass];
  const [node, argument] = [page.nodes[pass.node], page.nodes[pass.argument]];
  if (node.shape.length || argument.shape.length) return null;
  return { name: `${node.bar}·∂${node.name}/∂${argument.name}`, value: flat(page.back.brought[step.pass])[0] };
}

function takeGuess(page, text) {
  const value = read(text);
  if (value === null || page.guess === null) return;
  const right = Math.abs(value - page.guess.value) <= 0.005 * Math.max(Math.abs(page.guess.value), 1e-9);
  const said = right ? WORDS.guessRight : say("guessWrong", short(page.guess.value));
  stepBy(page, 1);
  put(page.part("guessed"), said);
  page.part("guess").hidden = false;
  page.root.querySelector("[data-guess]").hidden = true;
}

function playSteps(page) {
  if (page.timer) {
    stopPlaying(page);
    return;
  }
  if (page.isDone) page.at = 0;
  page.timer = setInterval(() => {
    stepBy(page, 1);
    if (page.isDone) stopPlaying(page);
  }, 1000);
  page.show();
}

function stopPlaying(page) {
  clearInterval(page.timer);
  page.timer = null;
  showSteps(page);
}

function goTo(page, to) {
  page.guess = null;
  page.at = to;
  page.show();
}

function knownSoFar(page) {
  // What is known at page step: values of nodes, adjoints as far as they have come, gradients that are complete.
  if (page.at === null) return null;
  const known = new Set(page.nodes.keys());
  for (const s of page.steps.slice(page.at)) known.delete(s.node);
  const made = page.at - page.forwards - 1;
  const none = { adjoints: new Array(page.nodes.length).fill(null), brought: [] };
  const v = new Map([...page.state.v].map(([k, x]) => [k, page.tape.kept(page.nodes[k], x)]));
  const back = made < 0 ? none : page.tape.reverse(page.values, v, page.state.cuts, page.state.hooks, made);
  const waiting = new Set(page.steps.slice(page.at).flatMap((s) => (s.pass === undefined ? [] : [page.tape.passes[s.pass].argument])));
  return { known, back, waiting };
}

function sentenceOf(page) {
  const step = page.at === null ? null : page.steps[page.at - 1];
  if (page.at === null) return WORDS.stepAll;
  if (!step) return WORDS.stepStart;
  const end = () => say("stepEnd", [...page.grads].slice(0, 6).map(([k, g]) => `${page.nodes[k].name}.grad = ${shown(page.nodes[k], g)}`).join(", "));
  const after = page.isDone ? [end()] : page.at === page.forwards ? [WORDS.stepForwardDone] : [];
  return [lineOf(page, step), ...after].join(". ");
}

function lineOf(page, step) {
  if (!step.seed) return step.node !== undefined ? forwardLine(page, step.node) : backwardLine(page, step.pass);
  const seeds = [...page.state.v].map(([k, x]) => `${page.nodes[k].bar} = v = ${summary(page.nodes[k].shape, x)}`);
  return say("stepSeed", seeds.join(", "));
}

function forwardLine(page, k) {
  const n = page.nodes[k];
  const sides = [n.name, n.formula];
  const numbers = inNumbers(page, n);
  if (numbers && numbers !== n.formula) sides.push(numbers);
  sides.push(shown(n, page.values[k]));
  return sides.join(" = ");
}

function inNumbers(page, n) {
  // A formula with the numbers in place of the names, where they are single ones.
  const known = new Map(n.args.filter((a) => page.nodes[a].name).map((a) => [page.nodes[a].name, a]));
  if ([...known.values()].some((a) => page.nodes[a].shape.length)) return "";
  return n.formula.replace(/[\p{L}_][\p{L}\p{N}\p{M}_.]*(\[[\d,]*\])?/gu, (word, _, at) => {
    const plain = !known.has(word) || n.formula[at + word.length] === "(";
    return plain ? word : bracketed(short(flat(page.values[known.get(word)])[0]));
  });
}

function backwardLine(page, i) {
  const pass = page.tape.passes[i];
  const [node, argument] = [page.nodes[pass.node], page.nodes[pass.argument]];
  const brought = shown(argument, page.back.brought[i]);
  const slope = page.tape.slope(pass, page.values);
  const now = knownSoFar(page).back.adjoints[pass.argument];
  let line = `${pass.rule} = ${brought}`;
  if (slope !== null && !node.shape.length) {
    const adjoint = short(flat(page.back.adjoints[pass.node])[0]);
    line = `${argument.bar} += ${node.bar}·∂${node.name}/∂${argument.name}`;
    line += ` = ${bracketed(adjoint)}·${bracketed(short(flat(slope)[0]))} = ${brought}`;
  } else if (slope !== null) {
    line = `${argument.bar} += ${node.bar}·(${pass.rule.slice(pass.rule.indexOf(" = ") + 3)}) = ${brought}`;
  }
  return termsOf(page, pass.argument).length > 1 ? `${line},  ${argument.bar} = ${shown(argument, now)}` : line;
}

function showSteps(page) {
  put(page.part("sentence"), page.guess ? say("guessAsk", page.guess.name) : sentenceOf(page));
  page.part("guess").hidden = !page.guess;
  const field = page.root.querySelector("[data-guess]");
  field.hidden = false;
  if (page.guess) field.value = "";
  put(page.part("guessed"), "");
  const whole = page.steps.length;
  put(page.part("place"), page.at === null ? "" : say("stepOutOf", page.at, whole));
  const disable = (action, is) => { for (const b of page.all(`[data-action="${action}"]`)) b.disabled = is; };
  for (const b of page.all('[data-action="play"]')) put(b, page.timer ? WORDS.pause : WORDS.play);
  for (const b of page.all('[data-action="guess"]')) b.setAttribute("aria-pressed", page.guessing);
  disable("first", page.at === 0);
  disable("previous", page.at === 0);
  disable("next", page.isDone);
  disable("last", page.at === null);
  showTicks(page, "forward", 0, page.forwards);
  showTicks(page, "backward", page.forwards, whole);
}

function showTicks(page, part, from, to) {
  // A tick for each step of a pass, or for some of many; a click goes there.
  const panel = page.part(part);
  const every = Math.max(1, Math.ceil((to - from) / MOST_TICKS));
  const count = Math.ceil((to - from) / every);
  if (panel.childElementCount !== count) {
    panel.replaceChildren(...Array.from({ length: count }, (_, k) => {
      const at = Math.min(to, from + (k + 1) * every);
      return make("button", { type: "button", class: "tick", tabindex: "-1", "data-at": at, "aria-label": say("tick", at, part), onclick: () => goTo(page, at) });
    }));
  }
  for (const tick of panel.children) flag(tick, "made", page.at === null || Number(tick.dataset.at) <= page.at);
}

function showHeadline(page) {
  // The loss, and what the last change did to it; unknown before its step.
  const known = page.at === null || page.at >= page.forwards;
  put(page.part("loss"), known ? lossText(page) : `${page.lossName()} = …`);
  for (const e of page.all(".says")) e.style.visibility = page.lossName() === page.data.scalar ? "" : "hidden";
  const by = page.before === undefined ? NaN : page.loss - page.before;
  const sign = by > 0 ? "▲" : by < 0 ? "▼" : "＝";
  put(page.part("trend"), !known ? "" : Number.isFinite(by) ? say("trendSays", sign, short(Math.abs(by))) : WORDS.trendNone);
  const finite = page.trend.filter(Number.isFinite);
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const points = finite.map((y, k) => `${((100 * k) / Math.max(1, finite.length - 1)).toFixed(1)},${(high > low ? 22 - (20 * (y - low)) / (high - low) : 12).toFixed(1)}`);
  page.part("curve").replaceChildren(...(finite.length > 1 && known ? [make("svg:polyline", { points: points.join(" "), class: "graph" })] : []));
}

function lossText(page) {
  // What L is, in numbers: 1·y0 + 10·y1.
  if (page.data.v.length === 1 && page.data.v[0][1] === page.data.scalar) return `${page.lossName()} = ${short(page.loss)}`;
  const terms = [...page.byCotangent].map(([name, k]) => {
    const v = page.state.v.get(k);
    const output = name.slice(0, -2);
    return page.nodes[k].shape.length ? `sum(v*${output})` : `${bracketed(short(v[0]))}·${output}`;
  });
  return `${page.data.scalar} = ${terms.slice(0, 8).join(" + ")}${terms.length > 8 ? " + …" : ""} = ${short(page.loss)}`;
}
