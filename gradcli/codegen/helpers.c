/* Sources: M. Abramowitz and I. Stegun, "Handbook of Mathematical Functions" (1964), 6.3 to 6.4 (digamma and polygamma:
   recurrence, reflection and asymptotic series); Gaussian elimination with partial pivoting. */

/* The remainder, with the sign of b. */
static inline double modulo(double a, double b)
{
    double r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* The division a / b, rounded down. */
static inline double quotient(double a, double b)
{
    return rint((a - modulo(a, b)) / b);
}

/* The larger number, or NaN. */
static inline double larger(double a, double b)
{
    return a > b || a != a ? a : b;
}

/* The smaller number, or NaN. */
static inline double smaller(double a, double b)
{
    return a < b || a != a ? a : b;
}

/* log(1 + exp(x)), without overflow. */
static inline double softplus(double x)
{
    return larger(x, 0) + log1p(exp(-fabs(x)));
}

static inline double heaviside(double x, double at0)
{
    return x < 0 ? 0 : x > 0 ? 1 : x == 0 ? at0 : x;
}

static inline double sign(double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : 0;
}

/* Whether a is larger than b; nothing is larger than NaN. */
static inline int exceeds(double a, double b)
{
    return a > b || (a != a && b == b);
}

/* Whether a is smaller than b; nothing is smaller than NaN. */
static inline int undercuts(double a, double b)
{
    return a < b || (a != a && b == b);
}

/* Whether a comes before b in order; NaN is the largest. */
static inline int comes_first(double a, double b, int descending)
{
    return descending ? exceeds(a, b) : a < b || (a == a && b != b);
}

/* The indices that sort x, stably: NaN is the largest. */
static inline void argsort(int n, int descending, const double *x, double *order)
{
    for (int i = 0; i < n; i++) {
        int j = i;
        for (; j > 0; j--) {
            if (!comes_first(x[i], x[(int)order[j - 1]], descending)) break;
            order[j] = order[j - 1];
        }
        order[j] = i;
    }
}

/* The index of the median, the lower one of two, or of the first NaN. */
static inline int middle(int n, const double *x, double *order)
{
    argsort(n, 0, x, order);
    for (int i = 0; i < n; i++) {
        if (x[i] != x[i]) return i;
    }
    return (int)order[(n - 1 - (n + 1) % 2) / 2];
}

/* The derivative of log(gamma(x)). */
static inline double digamma(double x)
{
    if (x == 0 || x == -INFINITY) return x == 0 ? -1 / x : NAN;
    if (x < 0) return x == floor(x) ? NAN : digamma(1 - x) - PI / tan(PI * (x - rint(x)));
    double sum = 0;
    for (; x < 12; x++) sum -= 1 / x;
    double w = 1 / (x * x);
    double series = w * (1.0 / 240 - w * (1.0 / 132 - w * (691.0 / 32760 - w / 12)));
    return sum + log(x) - 0.5 / x - w * (1.0 / 12 - w * (1.0 / 120 - w * (1.0 / 252 - series)));
}

/* The n-th derivative of PI / tan(PI * x). */
static inline double cot_slope(int n, double x)
{
    double p[180], y = 1 / tan(PI * (x - rint(x))), sum = 0;
    for (int k = 0; k < n + 3; k++) p[k] = k == 1 ? PI : 0;
    for (int m = 0; m < n; m++) {
        double before = 0;
        for (int k = 0; k < m + 3; k++) {
            double below = k > 0 ? (k - 1) * before : 0;
            before = p[k];
            p[k] = -PI * (below + (k + 1) * p[k + 1]);
        }
    }
    for (int k = n + 1; k >= 0; k--) sum = sum * y + p[k];
    return sum;
}

/* Hurwitz's zeta function, the sum of (q + k)**-s, by Euler and Maclaurin's sum; below 0 by reflection or, for large s,
   as its two largest terms. */
static inline double zeta(double s, double q)
{
    if (s == 1 || (s > 1 && q <= 0 && q == floor(q) && q > -INFINITY)) return INFINITY;
    if (!(s > 1 && s < INFINITY && fabs(q) < INFINITY) || (q < 0 && s != floor(s))) return NAN;
    if (q < 0 && s > 171) {
        double r = q - rint(q);
        return pow(r, -s) + pow(r > 0 ? r - 1 : r + 1, -s);
    }
    if (q < -1) {
        int n = (int)s - 1;
        double factorial = 1;
        for (int k = 2; k <= n; k++) factorial *= k;
        return (n % 2 ? -1 : 1) * (cot_slope(n, q) / factorial + zeta(s, 1 - q));
    }
    const double bernoulli[12] = {
        1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730,
        7.0 / 6, -3617.0 / 510, 43867.0 / 798, -174611.0 / 330, 854513.0 / 138, -236364091.0 / 2730,
    };
    double sum = 0, term = pow(q, -s);
    for (; q < 11 + s && fabs(term) > 1e-18 * fabs(sum); term = pow(q, -s)) {
        sum += term;
        q += 1;
    }
    if (fabs(term) <= 1e-18 * fabs(sum)) return sum;
    sum += term * (q / (s - 1) + 0.5);
    term *= s / (2 * q);
    for (int k = 0; k < 12; k++) {
        sum += bernoulli[k] * term;
        term *= (s + 2 * k + 1) * (s + 2 * k + 2) / ((2 * k + 3) * (2 * k + 4) * q * q);
    }
    return sum;
}

/* The derivative of digamma of an order. */
static inline double polygamma(double order, double x)
{
    int n = (int)order;
    if (n == 0) return digamma(x);
    if (n < 0 || n > 170 || n != order || x == -INFINITY) return NAN;
    if (x <= 0 && x == floor(x)) return n % 2 ? INFINITY : -INFINITY;
    if (x == INFINITY) return 0;
    double result = (n % 2 ? 1 : -1) * zeta(order + 1, x);
    for (int k = 2; k <= n; k++) result *= k;
    return result;
}

static inline void swap_numbers(double *a, int i, int j)
{
    double kept = a[i];
    a[i] = a[j];
    a[j] = kept;
}

/* The determinant of a matrix, which is overwritten. */
static inline double determinant(int n, double *a)
{
    double det = 1;
    for (int k = 0; k < n; k++) {
        int p = k;
        for (int i = k + 1; i < n; i++) {
            if (fabs(a[i * n + k]) > fabs(a[p * n + k])) p = i;
        }
        if (p != k) {
            det = -det;
            for (int j = k; j < n; j++) swap_numbers(a, k * n + j, p * n + j);
        }
        det *= a[k * n + k];
        if (a[k * n + k] == 0) return det;
        for (int i = k + 1; i < n; i++) {
            double f = a[i * n + k] / a[k * n + k];
            for (int j = k + 1; j < n; j++) a[i * n + j] -= f * a[k * n + j];
        }
    }
    return det;
}

/* Solve a x = b; b becomes x, and a is overwritten. */
static inline void solve_equations(int n, double *a, int m, double *b)
{
    for (int k = 0; k < n; k++) {
        int p = k;
        for (int i = k + 1; i < n; i++) {
            if (fabs(a[i * n + k]) > fabs(a[p * n + k])) p = i;
        }
        for (int j = k; p != k && j < n; j++) swap_numbers(a, k * n + j, p * n + j);
        for (int j = 0; p != k && j < m; j++) swap_numbers(b, k * m + j, p * m + j);
        if (a[k * n + k] == 0) a[k * n + k] = NAN;
        for (int i = k + 1; i < n; i++) {
            double f = a[i * n + k] / a[k * n + k];
            for (int j = k + 1; j < n; j++) a[i * n + j] -= f * a[k * n + j];
            for (int j = 0; j < m; j++) b[i * m + j] -= f * b[k * m + j];
        }
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int j = 0; j < m; j++) {
            for (int k = i + 1; k < n; k++) b[i * m + j] -= a[i * n + k] * b[k * m + j];
            b[i * m + j] /= a[i * n + i];
        }
    }
}

/* The inverse of a matrix, which is overwritten. */
static inline void invert(int n, double *a, double *inverse)
{
    for (int k = 0; k < n * n; k++) inverse[k] = k % (n + 1) == 0 ? 1 : 0;
    solve_equations(n, a, n, inverse);
}

/* The derivatives of the determinant by each element. */
static inline void cofactors(int n, const double *a, double *minor, double *result)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            int k = 0;
            for (int r = 0; r < n; r++) {
                for (int c = 0; c < n; c++) {
                    if (r != i && c != j) minor[k++] = a[r * n + c];
                }
            }
            result[i * n + j] = ((i + j) % 2 ? -1 : 1) * determinant(n - 1, minor);
        }
    }
}
