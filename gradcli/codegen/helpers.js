/* Functions that JavaScript does not have, as in `helpers.c`.  Sources: M. Abramowitz and I. Stegun, "Handbook of
   Mathematical Functions" (1964), 6.1 (gamma function: recurrence, reflection and asymptotic series), 6.3 to 6.4
   (digamma and polygamma), 7.1 (error function: 7.1.6 and the continued fraction 7.1.14); Lanczos's approximation with
   P. Godfrey's coefficients for g = 7; Gaussian elimination with partial pivoting. */

function power(a, b) {
  return a === 1 ? 1 : a ** b;
}

function roundEven(x) {
  const r = Math.round(x);
  return Math.abs(x % 1) === 0.5 && r % 2 !== 0 ? r - 1 : r;
}

// The gamma function, by Lanczos's approximation.
function gamma(x) {
  if (x === Math.floor(x) && x > 0 && x < 24) {
    let product = 1;
    for (let k = 2; k < x; k++) product *= k;
    return product;
  }
  if (x === 0 || x === Infinity) return 1 / (x === 0 ? x : 0);
  if (x < 0.5) return x === Math.floor(x) ? NaN : Math.PI / (sineOfPi(x) * gamma(1 - x));
  let t = x + 6.5, half = Math.pow(t, 0.5 * (x - 0.5));
  return x > 171.7 ? Infinity : 2.5066282746310005 * half * Math.exp(-t) * half * lanczos(x);
}

// log|gamma(x)|.
function lgamma(x) {
  if (x === Infinity || x === -Infinity) return Infinity;
  if (x < 0.5) return x === Math.floor(x) ? Infinity : Math.log(Math.PI / Math.abs(sineOfPi(x))) - lgamma(1 - x);
  if (x < 100) return Math.log(gamma(x));
  let w = 1 / (x * x);
  return (x - 0.5) * Math.log(x) - x + 0.9189385332046728 + (1 / 12 - w * (1 / 360 - w / 1260)) / x;
}

// sin(PI * x), exact at integers.
function sineOfPi(x) {
  let rest = x - roundEven(x);
  return (roundEven(x) % 2 === 0 ? 1 : -1) * Math.sin(Math.PI * rest);
}

function lanczos(x) {
  const c = [
    676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
  ];
  let sum = 0.99999999999980993;
  for (let k = 0; k < 8; k++) sum += c[k] / (x + k);
  return sum;
}

// The error function, by its series.
function erf(x) {
  if (Math.abs(x) > 1) return x > 0 ? 1 - erfc(x) : erfc(-x) - 1;
  let term = 1.1283791670955126 * x * Math.exp(-x * x), sum = 0;
  for (let k = 1; k < 30; k++) {
    sum += term;
    term *= 2 * x * x / (2 * k + 1);
  }
  return sum;
}

// 1 - erf(x), by its continued fraction.
function erfc(x) {
  if (x < 1) return x < -1 ? 2 - erfc(-x) : 1 - erf(x);
  if (!(x < 28)) return x === x ? 0 : x;
  let fraction = x;
  for (let k = 200; k > 0; k--) fraction = x + 0.5 * k / fraction;
  let near = Math.floor(16 * x) / 16;
  return Math.exp(-near * near) * Math.exp((near - x) * (near + x)) / fraction * 0.5641895835477563;
}

// The remainder, with the sign of b.
function modulo(a, b) {
  let r = a % b;
  return r !== 0 && (r < 0) !== (b < 0) ? r + b : r;
}

// The division a / b, rounded down.
function quotient(a, b) {
  return roundEven((a - modulo(a, b)) / b);
}

// The larger number, or NaN.
function larger(a, b) {
  return a > b || a !== a ? a : b;
}

// The smaller number, or NaN.
function smaller(a, b) {
  return a < b || a !== a ? a : b;
}

// log(1 + exp(x)), without overflow.
function softplus(x) {
  return larger(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
}

function heaviside(x, at0) {
  return x < 0 ? 0 : x > 0 ? 1 : x === 0 ? at0 : x;
}

function sign(x) {
  return x > 0 ? 1 : x < 0 ? -1 : 0;
}

// Whether a is larger than b; nothing is larger than NaN.
function exceeds(a, b) {
  return a > b || (a !== a && b === b);
}

// Whether a is smaller than b; nothing is smaller than NaN.
function undercuts(a, b) {
  return a < b || (a !== a && b === b);
}

// Whether a comes before b in order; NaN is the largest.
function comesFirst(a, b, descending) {
  return descending ? exceeds(a, b) : a < b || (a === a && b !== b);
}

// The indices that sort x, stably: NaN is the largest.
function argsort(n, descending, x, order) {
  for (let i = 0; i < n; i++) {
    let j = i;
    for (; j > 0; j--) {
      if (!comesFirst(x[i], x[order[j - 1]], descending)) break;
      order[j] = order[j - 1];
    }
    order[j] = i;
  }
}

// The index of the median, the lower one of two, or of the first NaN.
function middle(n, x, order) {
  argsort(n, 0, x, order);
  for (let i = 0; i < n; i++) {
    if (x[i] !== x[i]) return i;
  }
  return order[(n - 1 - (n + 1) % 2) / 2];
}

// The derivative of log(gamma(x)).
function digamma(x) {
  if (x === 0 || x === -Infinity) return x === 0 ? -1 / x : NaN;
  if (x < 0) return x === Math.floor(x) ? NaN : digamma(1 - x) - Math.PI / Math.tan(Math.PI * (x - roundEven(x)));
  let sum = 0;
  for (; x < 12; x++) sum -= 1 / x;
  let w = 1 / (x * x);
  let series = w * (1 / 240 - w * (1 / 132 - w * (691 / 32760 - w / 12)));
  return sum + Math.log(x) - 0.5 / x - w * (1 / 12 - w * (1 / 120 - w * (1 / 252 - series)));
}

// The n-th derivative of PI / tan(PI * x).
function cotSlope(n, x) {
  const p = new Float64Array(180);
  let y = 1 / Math.tan(Math.PI * (x - roundEven(x))), sum = 0;
  for (let k = 0; k < n + 3; k++) p[k] = k === 1 ? Math.PI : 0;
  for (let m = 0; m < n; m++) {
    let before = 0;
    for (let k = 0; k < m + 3; k++) {
      let below = k > 0 ? (k - 1) * before : 0;
      before = p[k];
      p[k] = -Math.PI * (below + (k + 1) * p[k + 1]);
    }
  }
  for (let k = n + 1; k >= 0; k--) sum = sum * y + p[k];
  return sum;
}

// Hurwitz's zeta function, the sum of (q + k)**-s, by Euler and Maclaurin's sum; below 0 by reflection or, for large s,
// as its two largest terms.
function zeta(s, q) {
  if (s === 1 || (s > 1 && q <= 0 && q === Math.floor(q) && q > -Infinity)) return Infinity;
  if (!(s > 1 && s < Infinity && Math.abs(q) < Infinity) || (q < 0 && s !== Math.floor(s))) return NaN;
  if (q < 0 && s > 171) {
    let r = q - roundEven(q);
    return Math.pow(r, -s) + Math.pow(r > 0 ? r - 1 : r + 1, -s);
  }
  if (q < -1) {
    let n = s - 1, factorial = 1;
    for (let k = 2; k <= n; k++) factorial *= k;
    return (n % 2 ? -1 : 1) * (cotSlope(n, q) / factorial + zeta(s, 1 - q));
  }
  const bernoulli = [
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730,
    7 / 6, -3617 / 510, 43867 / 798, -174611 / 330, 854513 / 138, -236364091 / 2730,
  ];
  let sum = 0, term = Math.pow(q, -s);
  for (; q < 11 + s && Math.abs(term) > 1e-18 * Math.abs(sum); term = Math.pow(q, -s)) {
    sum += term;
    q += 1;
  }
  if (Math.abs(term) <= 1e-18 * Math.abs(sum)) return sum;
  sum += term * (q / (s - 1) + 0.5);
  term *= s / (2 * q);
  for (let k = 0; k < 12; k++) {
    sum += bernoulli[k] * term;
    term *= (s + 2 * k + 1) * (s + 2 * k + 2) / ((2 * k + 3) * (2 * k + 4) * q * q);
  }
  return sum;
}

// The derivative of digamma of an order.
function polygamma(order, x) {
  let n = order;
  if (n === 0) return digamma(x);
  if (n < 0 || n > 170 || n !== Math.floor(n) || x === -Infinity) return NaN;
  if (x <= 0 && x === Math.floor(x)) return n % 2 ? Infinity : -Infinity;
  if (x === Infinity) return 0;
  let result = (n % 2 ? 1 : -1) * zeta(n + 1, x);
  for (let k = 2; k <= n; k++) result *= k;
  return result;
}

function swapNumbers(a, i, j) {
  let kept = a[i];
  a[i] = a[j];
  a[j] = kept;
}

// The determinant of a matrix, which is overwritten.
function determinant(n, a) {
  let det = 1;
  for (let k = 0; k < n; k++) {
    let p = k;
    for (let i = k + 1; i < n; i++) {
      if (Math.abs(a[i * n + k]) > Math.abs(a[p * n + k])) p = i;
    }
    if (p !== k) {
      det = -det;
      for (let j = k; j < n; j++) swapNumbers(a, k * n + j, p * n + j);
    }
    det *= a[k * n + k];
    if (a[k * n + k] === 0) return det;
    for (let i = k + 1; i < n; i++) {
      let f = a[i * n + k] / a[k * n + k];
      for (let j = k + 1; j < n; j++) a[i * n + j] -= f * a[k * n + j];
    }
  }
  return det;
}

// Solve a x = b; b becomes x, and a is overwritten.
function solveEquations(n, a, m, b) {
  for (let k = 0; k < n; k++) {
    let p = k;
    for (let i = k + 1; i < n; i++) {
      if (Math.abs(a[i * n + k]) > Math.abs(a[p * n + k])) p = i;
    }
    for (let j = k; p !== k && j < n; j++) swapNumbers(a, k * n + j, p * n + j);
    for (let j = 0; p !== k && j < m; j++) swapNumbers(b, k * m + j, p * m + j);
    if (a[k * n + k] === 0) a[k * n + k] = NaN;
    for (let i = k + 1; i < n; i++) {
      let f = a[i * n + k] / a[k * n + k];
      for (let j = k + 1; j < n; j++) a[i * n + j] -= f * a[k * n + j];
      for (let j = 0; j < m; j++) b[i * m + j] -= f * b[k * m + j];
    }
  }
  for (let i = n - 1; i >= 0; i--) {
    for (let j = 0; j < m; j++) {
      for (let k = i + 1; k < n; k++) b[i * m + j] -= a[i * n + k] * b[k * m + j];
      b[i * m + j] /= a[i * n + i];
    }
  }
}

// The inverse of a matrix, which is overwritten.
function invert(n, a, inverse) {
  for (let k = 0; k < n * n; k++) inverse[k] = k % (n + 1) === 0 ? 1 : 0;
  solveEquations(n, a, n, inverse);
}

// The derivatives of the determinant by each element.
function cofactors(n, a, minor, result) {
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < n; j++) {
      let k = 0;
      for (let r = 0; r < n; r++) {
        for (let c = 0; c < n; c++) {
          if (r !== i && c !== j) minor[k++] = a[r * n + c];
        }
      }
      result[i * n + j] = ((i + j) % 2 ? -1 : 1) * determinant(n - 1, minor);
    }
  }
}
