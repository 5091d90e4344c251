// How the graph is seen: its size, and alone, in large type, for a room.

const [SMALLEST, LARGEST, ZOOM] = [0.1, 4, 1.25]; // of the graph's own size; and how much one press changes it
const PRESENTED = 1.3; // times its own size, at least, in large type

function viewAtFirst() {
  return { zoom: null, present: false }; // a zoom is a number, "fit", or null: the graph's own size
}

function viewActions(page) {
  return {
    "zoom-in": () => zoomTo(page, scaleOf(page) * ZOOM),
    "zoom-out": () => zoomTo(page, scaleOf(page) / ZOOM),
    fit: () => changeView(page, { zoom: page.view.zoom === "fit" ? null : "fit" }),
    present: () => changeView(page, { present: !page.view.present }),
  };
}

function listenView(page) {
  window.addEventListener("resize", () => showView(page));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && page.view.present) changeView(page, { present: false });
  });
}

function zoomTo(page, scale) {
  const zoom = Number(Math.min(LARGEST, Math.max(SMALLEST, scale)).toPrecision(3));
  changeView(page, { zoom: zoom === 1 && !page.view.present ? null : zoom });
  put(page.part("live"), say("zoomSays", Math.round(100 * zoom)));
}

function changeView(page, what) {
  Object.assign(page.view, what);
  showView(page);
  page.later();
}

function scaleOf(page) {
  const { zoom, present } = page.view;
  if (typeof zoom === "number") return zoom;
  if (zoom === null && !present) return 1;
  const height = (part) => page.root.querySelector(part).offsetHeight;
  const [wide, high] = ["width", "height"].map((side) => Number(page.picture.getAttribute(side)));
  // A frame is as high as its content, which is thus no bound.
  const room = IS_FRAMED ? Infinity : Math.max(200, window.innerHeight - height(".headline") - height(".steps") - (present ? 90 : 40));
  const fits = Math.min(LARGEST, page.picture.parentNode.clientWidth / wide, room / high);
  return Math.max(zoom === "fit" ? SMALLEST : PRESENTED, fits);
}

function showView(page) {
  const { zoom, present } = page.view;
  page.root.classList.toggle("present", present);
  document.documentElement.classList.toggle("presenting", document.querySelector(".live.present") !== null);
  for (const b of page.all('[data-action="present"]')) b.setAttribute("aria-pressed", present);
  for (const b of page.all('[data-action="fit"]')) b.setAttribute("aria-pressed", zoom === "fit");
  if (!page.picture) return;
  page.root.style.setProperty("--head", `${page.root.querySelector(".headline").offsetHeight}px`); // below which the steps stay
  const scale = scaleOf(page);
  page.picture.style.minWidth = page.picture.style.maxWidth = `${(scale * Number(page.picture.getAttribute("width"))).toFixed(1)}px`;
  for (const b of page.all('[data-action="zoom-in"]')) b.disabled = scale >= LARGEST;
  for (const b of page.all('[data-action="zoom-out"]')) b.disabled = scale <= SMALLEST;
  // A text that would be smaller than 11 pixels is not drawn: the graph is a map then, whose boxes have their names.
  const isMap = 13 * scale < 10.99;
  page.picture.classList.toggle("smaller", scale < 0.999);
  page.picture.classList.toggle("map", isMap);
  for (const box of page.picture.querySelectorAll("[data-box]")) {
    if (isMap) box.setAttribute("aria-label", box.dataset.box);
    else box.removeAttribute("aria-label");
  }
}
