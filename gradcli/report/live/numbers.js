/* global WORDS, KERNELS */
// The live page: a system whose numbers can be changed.  KERNELS are functions that gradcli exports, one for each kind
// of operation and of its passes; everything here is about when they are called, and what is shown of their results.

const SIGNIFICANT = 6;
const SMALL = 64; // entries of an array that has a field for each
const SHOWN_PATHS = 5;
const MOST_LOOKED = 20000; // steps along paths
const MOST_TICKS = 60;
const LARGE = [[3, 3], [2, 2], [1, 4], [1, 3], [1, 2]]; // how many rows and columns of a large array are tried
const MOST_BARS = 24;
const HEAT_ROWS = 32;
const BARS = "▁▂▃▄▅▆▇█";
const MANY = 500; // nodes of a page that rests before its paths and its curve follow
const RESTING = 150; // milliseconds
const PULSE = 300; // milliseconds along an edge
const DIVERGED = 1e6; // times the first loss
const ADJOINT = -1;
const RESULT = -2;

// Numbers and words

function say(key, ...values) {
  return WORDS[key].replace(/\{(\d)\}/g, (_, k) => String(values[k]));
}

function short(x) {
  if (Number.isNaN(x)) return "nan";
  if (!Number.isFinite(x)) return x > 0 ? "inf" : "-inf";
  if (x === 0) return "0";
  const size = Math.abs(x);
  const rounded = Number(x.toPrecision(SIGNIFICANT));
  if (size >= 1e-4 && Math.abs(rounded) < 10 ** SIGNIFICANT) return String(rounded);
  return rounded.toExponential().replace("e+", "e");
}

function typed(x) {
  // A number with all its digits, as gradcli and Python read it.
  if (Number.isNaN(x)) return "nan";
  if (!Number.isFinite(x)) return x > 0 ? "inf" : "-inf";
  return Object.is(x, -0) ? "-0.0" : String(x).replace("e+", "e");
}

function read(text) {
  const plain = text.trim().replace(/\u2212/g, "-").replace(/_/g, "").toLowerCase();
  const word = /^([+-]?)(inf|infinity|nan)$/.exec(plain);
  if (word) return word[2] === "nan" ? NaN : word[1] === "-" ? -Infinity : Infinity;
  const one = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/;
  const [above, below, ...more] = plain.split("/").map((part) => part.trim());
  if (more.length || !one.test(above) || (below !== undefined && !one.test(below))) return null;
  return below === undefined ? Number(above) : Number(above) / Number(below);
}

function bracketed(text) {
  return text.startsWith("-") ? `(${text})` : text;
}

const numberOf = (x) => (x === "NaN" ? NaN : x === "Infinity" ? Infinity : x === "-Infinity" ? -Infinity : x);

function entryName(name, shape, entry) {
  if (!shape.length) return name;
  const index = [];
  for (let axis = shape.length - 1, rest = entry; axis >= 0; axis--) {
    index.unshift(rest % shape[axis]);
    rest = Math.floor(rest / shape[axis]);
  }
  return `${name}[${index.join(",")}]`;
}

function nested(shape, array, write, rows = Infinity, columns = rows) {
  // An array as a list of lists, of at most so many elements of the last axis, and of each other one.
  if (!shape.length) return write(array[0]);
  const [step, most] = [array.length / shape[0], shape.length > 1 ? rows : columns];
  const parts = Array.from({ length: Math.min(most, shape[0]) }, (_, k) => nested(shape.slice(1), array.slice(k * step, (k + 1) * step), write, rows, columns));
  return `[${parts.join(", ")}${most < shape[0] ? ", …" : ""}]`;
}

function summary(shape, array, letters = 60) {
  // An array as it is written, or its beginning.
  for (const [rows, columns] of array.length > 12 ? LARGE : [[12, 12], [5, 5], ...LARGE]) {
    const text = nested(shape, array, short, rows, columns);
    if (text.length <= letters) return text;
  }
  return nested(shape, array, short, 1);
}

const flat = (x) => (typeof x === "number" || typeof x === "boolean" ? [Number(x)] : x);
const plus = (a, b) => Array.from(a.length > b.length ? a : b, (_, k) => a[k % a.length] + b[k % b.length]);
const norm = (x) => Math.sqrt(flat(x).reduce((sum, e) => sum + e * e, 0));

function shown(node, value) {
  return value === null || value === undefined ? WORDS.none : summary(node.shape, flat(value));
}
