#ifndef REALS_H
#define REALS_H
/* Scalar exp, log and pow of doubles for the few numbers an op computes once (frequencies, slopes): fma, division and integer
 * operations only, so that they are the same bits on every machine, which libm's are not. Errors below 4e-16 of the result for
 * exp and log; x^y: below 1e-15*(1 + |y ln x|). */

#include <stdint.h>

double real_exp(double x);              /* 0 and infinity outside the range of doubles */
double real_log(double x);              /* of a positive finite x; -infinity of 0; NaN below */
double real_pow(double x, double y);    /* x > 0 */

/* The slope of head h of n in attention with linear biases (Press, Smith and Lewis 2022), 1 when max_bias is not positive:
 * powers of 2^(-max_bias/L) for the first L heads, L the largest power of two within n; odd powers of its root for the rest. */
float alibi_slope(int64_t h, int64_t n, float max_bias);

#endif
