/* exp and log by their series on reduced arguments: no tables, no speed, no doubt. */

#include "reals.h"

#include <math.h>

#define LN2_HIGH 0x1.62e42fefa39efp-1
#define LN2_LOW  0x1.abc9e3b39803fp-56

double real_exp(double x) {
    if (!(x > -746.0)) return x != x ? x : 0.0;
    if (x > 710.0) return INFINITY;
    const double k = floor(x*0x1.71547652b82fep+0 + 0.5), r = fma(k, -LN2_LOW, fma(k, -LN2_HIGH, x));
    double p = 1.0;
    for (int i = 14; i > 0; i--) p = fma(r/i, p, 1.0);
    return ldexp(p, (int) k);
}

double real_log(double x) {
    if (!(x > 0.0) || isinf(x)) return x == 0.0 ? -INFINITY : x > 0.0 ? x : NAN;
    int e;
    double m = frexp(x, &e);
    if (m < 0x1.6a09e667f3bcdp-1) m *= 2, e--;                  /* sqrt(1/2) <= m < sqrt(2) */
    const double s = (m - 1.0)/(m + 1.0), u = s*s;              /* ln m = 2 (s + s^3/3 + s^5/5 + ..), s^2 < 0.03 */
    double p = 0.0;
    for (int i = 23; i > 1; i -= 2) p = fma(p, u, 1.0/i);
    return fma(e, LN2_HIGH, fma(e, LN2_LOW, fma(2*s*u, p, 2*s)));
}

double real_pow(double x, double y) { return real_exp(y*real_log(x)); }

float alibi_slope(int64_t h, int64_t n, float max_bias) {
    if (!(max_bias > 0.0f)) return 1.0f;
    int64_t whole = 1;
    while (2*whole <= n) whole *= 2;
    const double power = h < whole ? (double) (h + 1)/(double) whole : (double) (2*(h - whole) + 1)/(2.0*(double) whole);
    return (float) real_exp(-(double) max_bias*power*LN2_HIGH);
}
