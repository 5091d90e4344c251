
function selfTest() {
  let wrong = 0;
  const isClose = (a, b) => Number.isFinite(b) && Math.abs(a - b) <= 1e-12 + 1e-9 * Math.abs(b);
  const closeTo = (a, b) => Object.is(a, b) || a === b || isClose(a, b);
  const check = (name, found, expected) => {
    const flat = typeof found === "number" ? [found] : Array.from(found);
    const right = flat.length === expected.length;
    if (right && flat.every((a, i) => closeTo(a, expected[i]))) return;
    wrong = 1;
    console.log(`${name} is ${flat} where gradcli has ${expected}`);
  };
TESTS
  console.log(wrong ? "wrong" : "as gradcli has it");
  process.exitCode = wrong;
}

if (typeof process !== "undefined" && process.argv?.[1] && import.meta.url.startsWith("file:")) {
  Promise.all([import("node:fs"), import("node:url")]).then(([fs, url]) => {
    const real = (file) => fs.existsSync(file) && fs.realpathSync(file);
    if (real(process.argv[1]) === real(url.fileURLToPath(import.meta.url))) selfTest();
  });
}
