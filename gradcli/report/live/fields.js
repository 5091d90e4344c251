// Fields: what is typed and turned.

function showField(page, field) {
  const { input, node, entry, isV } = field;
  const value = (isV ? page.state.v : page.state.point).get(node)[entry];
  input.dataset.number = String(value);
  const now = read(input.value);
  if (document.activeElement === input && now !== null && (Object.is(now, value) || Math.fround(now) === value)) return;
  if (document.activeElement === input && field.typing) return;
  const text = document.activeElement === input ? typed(value) : short(value);
  if (input.value !== text) input.value = text;
  input.removeAttribute("aria-invalid");
  input.setCustomValidity("");
}

function showSlider(page, { element, node }) {
  const value = page.state.point.get(node)[0];
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

function addField(page, input) {
  const isV = input.dataset.cotangent !== undefined;
  const field = { input, isV, node: Number(input.dataset.node), entry: Number(input.dataset.entry ?? 0), typing: false };
  page.fields.set(input, field);
  const said = isV ? say("cotangent", input.dataset.cotangent) : input.dataset.input;
  input.classList.add("field");
  for (const [name, value] of Object.entries({ type: "text", inputmode: "decimal", autocomplete: "off", spellcheck: "false", "aria-label": said })) {
    input.setAttribute(name, value);
  }
  const take = () => {
    const value = read(input.value);
    const now = (isV ? page.state.v : page.state.point).get(field.node)[field.entry];
    if (document.activeElement !== input && input.value === short(now)) return; // as it is shown, rounded
    if (value === null) {
      input.setAttribute("aria-invalid", "true");
      input.setCustomValidity(say("notNumber", input.value.slice(0, 40))); // told beside the field, on Enter
      return;
    }
    input.removeAttribute("aria-invalid");
    input.setCustomValidity("");
    if (!Object.is(value, (isV ? page.state.v : page.state.point).get(field.node)[field.entry])) page.setEntry(field, value);
  };
  input.addEventListener("input", () => {
    field.typing = true;
    take();
  });
  input.addEventListener("change", () => {
    take();
    field.typing = false;
    page.last = "";
    if (read(input.value) === null) put(page.part("live"), say("notNumber", input.value.slice(0, 40)));
  });
  input.addEventListener("blur", () => {
    field.typing = false;
    if (input.value) showField(page, field); // one that was emptied is about to be filled
  });
  input.addEventListener("focus", () => {
    if (input.value) showField(page, field); // with all its digits
    page.choose(field.node, field.entry);
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
    nudge(page, field, sign, event);
  });
  input.addEventListener("wheel", (event) => {
    if (document.activeElement !== input) return;
    event.preventDefault();
    nudge(page, field, event.deltaY < 0 ? 1 : -1, event);
  }, { passive: false });
  const label = page.root.querySelector(`label[for="${input.id}"]`);
  if (label) scrub(page, label, field, () => input.focus());
}
