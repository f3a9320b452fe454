/* exp, log and pow of doubles against libm's in long double; slopes of linear biases. */

#include "check.h"
#include "reals.h"

int main(void) {
    uint64_t seed = 3;
    for (int i = 0; i < 20000; i++) {
        const double x = (double) rnd_f32(&seed)*700, y = exp((double) rnd_f32(&seed)*700);
        const long double e = expl(x), l = logl(y);
        CHECK(fabsl(real_exp(x) - e) <= 4e-16L*e, "exp(%.17g)", x);
        CHECK(fabsl(real_log(y) - l) <= 4e-16L*fabsl(l), "log(%.17g)", y);
        const double base = 1 + fabs(x)*1e3, power = -(double) (i % 129)/64;
        const long double p = powl(base, power);
        CHECK(fabsl(real_pow(base, power) - p) <= 1e-15L*(1 + fabsl(power*logl(base)))*p, "pow(%.17g, %.17g)", base, power);
    }
    CHECK(real_exp(0) == 1 && real_exp(-INFINITY) == 0 && real_exp(INFINITY) == INFINITY && isnan(real_exp(NAN)), "exp");
    CHECK(real_exp(710) == INFINITY || real_exp(710) > 1e308, "exp(710)");
    CHECK(real_exp(-745) == exp(-745) && real_exp(-800) == 0, "exp below");
    CHECK(real_log(1) == 0 && real_log(0) == -INFINITY && real_log(INFINITY) == INFINITY && isnan(real_log(-1)), "log");
    CHECK(real_log(0x1p-1074) == log(0x1p-1074), "log of the smallest");
    static const float slopes[] = { 0.25f, 0.0625f, 0.015625f, 0.00390625f, 0.5f, 0.125f };         /* six heads, bias 8 */
    for (int h = 0; h < 6; h++) CHECK(fabsf(alibi_slope(h, 6, 8) - slopes[h]) <= 1e-7f*slopes[h], "slope %d", h);
    CHECK(alibi_slope(3, 6, 0) == 1, "no bias");
    return DONE();
}
