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
