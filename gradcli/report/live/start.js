const IS_FRAMED = typeof location !== "undefined" && location.protocol === "about:"; // without an address, in a sandbox

function start() {
  const roots = [...document.querySelectorAll("[data-live]")];
  const open = (root) => {
    if (root.dataset.ready !== undefined) return;
    root.dataset.ready = "";
    const data = JSON.parse(document.getElementById(root.dataset.live).textContent);
    root.page = new Page(root, data, KERNELS, roots.length === 1 && !IS_FRAMED);
    for (const button of IS_FRAMED ? root.querySelectorAll('[data-action="link"]') : []) button.hidden = true;
  };
  for (const root of roots) {
    const folded = root.closest("details:not([open])");
    if (folded) folded.addEventListener("toggle", () => open(root), { once: true });
    else open(root);
  }
}

function tellHeight() {
  // The page around a frame makes it as high as its content.
  const tell = () => parent.postMessage({ gradcliHeight: document.documentElement.offsetHeight }, "*");
  new ResizeObserver(tell).observe(document.body);
}

if (typeof document !== "undefined") {
  start();
  if (IS_FRAMED) tellHeight();
}
