
#ifdef NAME_TEST
#include <stdio.h>

static int close_to(const char *name, const double *found, const double *expected, int n)
{
    for (int i = 0; i < n; i++) {
        double a = found[i], b = expected[i];
        if (a == b || (a != a && b != b)) continue;
        if (fabs(b) < INFINITY && fabs(a - b) <= 1e-12 + 1e-9 * fabs(b)) continue;
        printf("%s[%d] is %.17g where gradcli has %.17g\n", name, i, a, b);
        return 0;
    }
    return 1;
}

int main(void)
{
    int wrong = 0;
TESTS
    printf(wrong ? "wrong\n" : "as gradcli has it\n");
    return wrong;
}
#endif
