/* What C's library has itself.  Sources: M. Abramowitz and I. Stegun, "Handbook of Mathematical Functions" (1964), 6.1
   (gamma function: recurrence, reflection and asymptotic series), 7.1 (error function: 7.1.6 and the continued fraction
   7.1.14); Lanczos's approximation with P. Godfrey's coefficients for g = 7. */

/* The gamma function, by Lanczos's approximation. */
double gamma(double x)
{
    if (x == floor(x) && x > 0 && x < 24) {
        double product = 1;
        for (int k = 2; k < x; k++) product *= k;
        return product;
    }
    if (x == 0 || x == INFINITY) return 1 / (x == 0 ? x : 0);
    if (x < 0.5) return x == floor(x) ? NAN : PI / (sine_of_pi(x) * gamma(1 - x));
    double t = x + 6.5, half = pow(t, 0.5 * (x - 0.5));
    return x > 171.7 ? INFINITY : 2.5066282746310005 * half * exp(-t) * half * lanczos(x);
}

/* log|gamma(x)|. */
double lgamma(double x)
{
    if (x == INFINITY || x == -INFINITY) return INFINITY;
    if (x < 0.5) return x == floor(x) ? INFINITY : log(PI / fabs(sine_of_pi(x))) - lgamma(1 - x);
    if (x < 100) return log(gamma(x));
    double w = 1 / (x * x);
    return (x - 0.5) * log(x) - x + 0.9189385332046728 + (1.0 / 12 - w * (1.0 / 360 - w / 1260)) / x;
}

/* sin(PI * x), exact at integers. */
double sine_of_pi(double x)
{
    double rest = x - rint(x);
    return (fmod(rint(x), 2) == 0 ? 1 : -1) * sin(PI * rest);
}

double lanczos(double x)
{
    const double c[8] = {
        676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
        12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
    };
    double sum = 0.99999999999980993;
    for (int k = 0; k < 8; k++) sum += c[k] / (x + k);
    return sum;
}

/* The error function, by its series. */
double erf(double x)
{
    if (fabs(x) > 1) return x > 0 ? 1 - erfc(x) : erfc(-x) - 1;
    double term = 1.1283791670955126 * x * exp(-x * x), sum = 0;
    for (int k = 1; k < 30; k++) {
        sum += term;
        term *= 2 * x * x / (2 * k + 1);
    }
    return sum;
}

/* 1 - erf(x), by its continued fraction. */
double erfc(double x)
{
    if (x < 1) return x < -1 ? 2 - erfc(-x) : 1 - erf(x);
    if (!(x < 28)) return x == x ? 0 : x;
    double fraction = x;
    for (int k = 200; k > 0; k--) fraction = x + 0.5 * k / fraction;
    double near = floor(16 * x) / 16;
    return exp(-near * near) * exp((near - x) * (near + x)) / fraction * 0.5641895835477563;
}
