#ifndef ELEMENTARY_H
#define ELEMENTARY_H
/* Elementary functions over the float steps of a simd/ header, so that one text is both the portable definition (one lane)
 * and every vector version: additions, products, fused multiply-adds, divisions and integer operations only. The largest
 * errors, in units in the last place of the exact result, hold over every float (tests/cpu/math.c):
 *     exp 1   expm1 2   log 1   tanh 2   sin, cos 1   sigmoid 3   softplus 3
 * NaN gives NaN; overflow, underflow and the subnormal range are rounded like any other value.
 * The polynomials are least squares with Lawson's weights on Chebyshev nodes, coefficients rounded one after the other. */

#include <math.h>

INLINE vf v_neg(vf x)             { return vf_of(vu_add(vu_of(x), vu_set1(0x80000000))); }
INLINE vf v_abs(vf x)             { return vf_of(vu_and(vu_of(x), vu_set1(0x7fffffff))); }
INLINE vf v_with_sign(vf x, vf s) { return vf_of(vu_or(vu_of(x), vu_and(vu_of(s), vu_set1(0x80000000)))); }     /* x >= 0 */
INLINE vf v_step(vf p, vf x, float c) { return vf_fma(p, x, vf_set1(c)); }                                      /* of Horner's rule */

/* e^x = 2^n (1 + q), |ln 2^-n e^x| <= ln 2/2: q, and n in the low bits of the word. */
INLINE vf v_exp_reduced(vf x, vu *n) {
    const vf shift = vf_set1(0x1.8p23f);                        /* adding it rounds to an integer, held in the low bits */
    const vf t = vf_fma(x, vf_set1(0x1.715476p+0f), shift), k = vf_sub(t, shift);
    const vf r = vf_fnma(k, vf_set1(-0x1.05c610p-29f), vf_fnma(k, vf_set1(0x1.62e430p-1f), x));
    vf p = vf_set1(0x1.a29d0ap-13f);
    p = v_step(p, r, 0x1.6d437ap-10f);
    p = v_step(p, r, 0x1.110fdcp-7f);
    p = v_step(p, r, 0x1.5554f0p-5f);
    p = v_step(p, r, 0x1.555556p-3f);
    p = v_step(p, r, 0x1p-1f);
    *n = vu_sub(vu_of(t), vu_of(shift));
    return vf_fma(vf_mul(r, r), p, r);
}

INLINE vf v_pow2(vu n) { return vf_of(vu_shl(vu_add(n, vu_set1(127)), 23)); }

INLINE vf v_exp(vf x) {
    vu n;
    x = vf_max(vf_set1(-104.0f), vf_min(vf_set1(89.0f), x));    /* in this order a NaN stays */
    const vf y = vf_add(v_exp_reduced(x, &n), vf_set1(1.0f));
    const vu half = vu_sar(n, 1);                               /* two exact scalings, or one exact and one rounded */
    return vf_mul(vf_mul(y, v_pow2(half)), v_pow2(vu_sub(n, half)));
}

INLINE vf v_expm1(vf x) {
    vu n;
    x = vf_max(vf_set1(-30.0f), vf_min(vf_set1(89.0f), x));
    const vf q = v_exp_reduced(x, &n), s = v_pow2(vu_sub(n, vu_set1(1)));           /* 2^(n-1): 2^128 is no float */
    return vf_mul(vf_fma(s, q, vf_sub(s, vf_set1(0.5f))), vf_set1(2.0f));
}

INLINE vf v_log(vf x) {
    const vm tiny = vf_lt(x, vf_set1(0x1p-126f));
    const vf big = vf_select(tiny, vf_mul(x, vf_set1(0x1p23f)), x);
    const vu word = vu_sub(vu_of(big), vu_set1(0x3f3504f3));                        /* of sqrt(1/2) */
    const vf n = vf_add(vf_from_int(vu_sar(word, 23)), vf_select(tiny, vf_set1(-23.0f), vf_set1(0.0f)));
    const vf f = vf_sub(vf_of(vu_add(vu_and(word, vu_set1(0x7fffff)), vu_set1(0x3f3504f3))), vf_set1(1.0f));
    vf p = vf_set1(0x1.b5c8b0p-5f);
    p = v_step(p, f, -0x1.bf0da4p-4f);
    p = v_step(p, f,  0x1.eff680p-4f);
    p = v_step(p, f, -0x1.010710p-3f);
    p = v_step(p, f,  0x1.230302p-3f);
    p = v_step(p, f, -0x1.552f04p-3f);
    p = v_step(p, f,  0x1.99a542p-3f);
    p = v_step(p, f, -0x1.000070p-2f);
    p = v_step(p, f,  0x1.555548p-2f);
    p = v_step(p, f, -0x1p-1f);
    const vf rest = vf_fma(n, vf_set1(-0x1.05c610p-29f), vf_mul(vf_mul(f, f), p));
    vf y = vf_fma(n, vf_set1(0x1.62e430p-1f), vf_add(f, rest));
    y = vf_select(vf_lt(x, vf_set1(INFINITY)), y, x);                               /* infinity and NaN */
    y = vf_select(vf_lt(x, vf_set1(0.0f)), vf_set1(NAN), y);
    return vf_select(vf_eq(x, vf_set1(0.0f)), vf_set1(-INFINITY), y);
}

INLINE vf v_tanh(vf x) {
    const vf a = v_abs(x), u = vf_mul(x, x);
    vf p = vf_set1(-0x1.82ca46p-8f);
    p = v_step(p, u,  0x1.54d0cep-6f);
    p = v_step(p, u, -0x1.b89c58p-5f);
    p = v_step(p, u,  0x1.1109c6p-3f);
    p = v_step(p, u, -0x1.55553ep-2f);
    const vf near = vf_fma(vf_mul(a, u), p, a);
    const vf far = vf_sub(vf_set1(1.0f), vf_div(vf_set1(2.0f), vf_add(v_exp(vf_add(a, a)), vf_set1(1.0f))));
    return v_with_sign(vf_select(vf_lt(a, vf_set1(0.6f)), near, far), x);
}

/* 1/(1 + e^-x), from e^-|x| on both sides: relative accuracy far to the left too. */
INLINE vf v_sigmoid(vf x) {
    const vf e = v_exp(v_neg(v_abs(x))), d = vf_div(vf_set1(1.0f), vf_add(vf_set1(1.0f), e));
    return vf_select(vf_lt(x, vf_set1(0.0f)), vf_mul(e, d), d);
}

/* ln(1 + e^x) = max(x, 0) + ln(1 + u), u = e^-|x|; the rounding of t = 1 + u is given back as (u - (t - 1))/t. */
INLINE vf v_softplus(vf x) {
    const vf one = vf_set1(1.0f), u = v_exp(v_neg(v_abs(x))), t = vf_add(one, u);
    const vf lost = vf_div(vf_sub(u, vf_sub(t, one)), t);
    return vf_add(vf_max(x, vf_set1(0.0f)), vf_add(v_log(t), lost));
}

/* x sigmoid(w): the gates below. Minus infinity is taken as the least finite float, so that the answer is -0, not NaN. */
INLINE vf v_gate(vf x, vf w)   { return vf_mul(vf_max(vf_set1(-0x1.fffffep127f), x), v_sigmoid(w)); }
INLINE vf v_silu(vf x)         { return v_gate(x, x); }
INLINE vf v_gelu_quick(vf x)   { return v_gate(x, vf_mul(vf_set1(1.702f), x)); }

/* x/2 (1 + tanh(u)) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3) (Hendrycks and Gimpel 2016). */
INLINE vf v_gelu(vf x) {
    const vf u2 = vf_fma(vf_mul(x, x), vf_set1(2*0.797884560802865f*0.044715f), vf_set1(2*0.797884560802865f));
    return v_gate(x, vf_mul(x, u2));
}

/* x/2 (1 + erf(x/sqrt 2)). Half of erfc(z), z = |x|/sqrt 2, is e^(-z^2) E(z)/2 with E(z) (1 + 2z) a polynomial in (z-2)/(z+2)
 * (the form of Shepherd and Laframboise 1981); z^2 = x^2/2 goes in as two floats, since its error would grow in the exp. */
INLINE vf v_gelu_erf(vf x) {
    const vf a = vf_min(vf_set1(16.0f), v_abs(x)), z = vf_mul(a, vf_set1(0x1.6a09e6p-1f)), two = vf_set1(2.0f);
    const vf half = vf_mul(a, vf_set1(0.5f)), s = vf_mul(half, a), s_low = vf_fma(half, a, v_neg(s));
    const vf up = vf_add(z, two), sum = vf_fma(z, two, vf_set1(1.0f));
    const vf q = vf_div(vf_set1(1.0f), vf_mul(up, sum)), w = vf_mul(vf_mul(vf_sub(z, two), sum), q);
    vf p = vf_set1(0x1.95d5acp-16f);
    p = v_step(p, w, -0x1.8671fcp-12f);
    p = v_step(p, w, -0x1.49ba54p-10f);
    p = v_step(p, w,  0x1.4fcd94p-10f);
    p = v_step(p, w,  0x1.1b4b32p-7f);
    p = v_step(p, w, -0x1.07aeaep-7f);
    p = v_step(p, w, -0x1.bc129ap-5f);
    p = v_step(p, w,  0x1.4ffb3ap-3f);
    p = v_step(p, w, -0x1.540804p-3f);
    p = v_step(p, w, -0x1.7bf600p-4f);
    p = v_step(p, w,  0x1.46e80ep+0f);
    const vf e = v_exp(v_neg(s));
    const vf tail = vf_mul(vf_mul(vf_mul(p, vf_mul(up, q)), vf_fnma(s_low, e, e)), vf_set1(0.5f));
    const vf phi = vf_select(vf_lt(x, vf_set1(0.0f)), tail, vf_sub(vf_set1(1.0f), tail));
    return vf_mul(vf_max(vf_set1(-0x1.fffffep127f), x), phi);
}

INLINE vf v_sqr(vf x)          { return vf_mul(x, x); }
INLINE vf v_relu(vf x)         { return vf_max(x, vf_set1(0.0f)); }
INLINE vf v_positive(vf x)     { return vf_select(vf_lt(vf_set1(0.0f), x), vf_set1(1.0f), vf_set1(0.0f)); }
INLINE vf v_sgn(vf x)          { return vf_select(vf_lt(x, vf_set1(0.0f)), vf_set1(-1.0f), v_positive(x)); }
INLINE vf v_elu(vf x)          { return vf_select(vf_lt(vf_set1(0.0f), x), x, v_expm1(x)); }
INLINE vf v_clamp(vf x, vf lo, vf hi) { return vf_max(lo, vf_min(hi, x)); }
INLINE vf v_hardsigmoid(vf x) {
    return v_clamp(vf_div(vf_add(x, vf_set1(3.0f)), vf_set1(6.0f)), vf_set1(0.0f), vf_set1(1.0f));
}
INLINE vf v_hardswish(vf x)    { return vf_mul(x, v_hardsigmoid(x)); }
/* Half away from zero: the largest float below one half, so that 0.49999997 does not reach one. */
INLINE vf v_round(vf x)        { return vf_trunc(vf_add(x, v_with_sign(vf_set1(0x1.fffffep-2f), x))); }

INLINE vf v_silu_back(vf dy, vf x) {
    const vf s = v_sigmoid(x), one = vf_set1(1.0f);
    return vf_mul(vf_mul(dy, s), vf_fma(x, vf_sub(one, s), one));
}
INLINE vf v_xielu(vf x, vf a_neg, vf a_pos, vf b, vf eps) {
    const vf pos = vf_mul(vf_mul(a_pos, x), x), neg = vf_mul(vf_sub(v_expm1(vf_min(eps, x)), x), a_neg);
    return vf_fma(b, x, vf_select(vf_lt(vf_set1(0.0f), x), pos, neg));
}
INLINE vf v_swiglu_oai(vf x, vf g, vf alpha, vf limit) {
    x = vf_min(limit, x);
    return vf_mul(v_gate(x, vf_mul(alpha, x)), vf_add(v_clamp(g, v_neg(limit), limit), vf_set1(1.0f)));
}
INLINE vf v_swiglu_clamp(vf x, vf g, vf limit) {
    return vf_mul(v_silu(vf_min(limit, x)), v_clamp(g, v_neg(limit), limit));
}

/* Both sine and cosine in doubles. The angle is reduced by the nearest multiple of pi/2, held as the sum of two doubles: for
 * |x| < 2^31 the reduced angle is right to 2^-52 of itself or 2^-70, the results to 1e-15. */
INLINE void v_sin_cos(vd x, vd *sin, vd *cos) {
    const vd shift = vd_set1(0x1.8p52);
    const vd t = vd_fma(x, vd_set1(0x1.45f306dc9c883p-1), shift), k = vd_sub(t, shift);     /* bits 0, 1 of t: the quadrant */
    const vd r = vd_fma(k, vd_set1(-0x1.1a62633145c07p-54), vd_fma(k, vd_set1(-0x1.921fb54442d18p+0), x));
    const vd u = vd_mul(r, r);
    vd s = vd_set1(0x1.5d9396374debbp-33), c = vd_set1(-0x1.8fb16595ea901p-37);
    s = vd_fma(s, u, vd_set1(-0x1.ae5e687994ec3p-26));
    s = vd_fma(s, u, vd_set1( 0x1.71de357afc554p-19));
    s = vd_fma(s, u, vd_set1(-0x1.a01a019c1608ep-13));
    s = vd_fma(s, u, vd_set1( 0x1.111111110f8a6p-7));
    s = vd_fma(s, u, vd_set1(-0x1.5555555555549p-3));
    s = vd_fma(vd_mul(s, u), r, r);
    c = vd_fma(c, u, vd_set1( 0x1.1ee9f1b985108p-29));
    c = vd_fma(c, u, vd_set1(-0x1.27e4f81349689p-22));
    c = vd_fma(c, u, vd_set1( 0x1.a01a019cc0172p-16));
    c = vd_fma(c, u, vd_set1(-0x1.6c16c16c15224p-10));
    c = vd_fma(c, u, vd_set1( 0x1.555555555554cp-5));
    c = vd_fma(vd_mul(c, u), u, vd_fma(u, vd_set1(-0.5), vd_set1(1.0)));
    *sin = vd_flip(t, 1, vd_pick(t, 0, c, s));
    const vd turned = vd_pick(t, 0, s, c);                      /* cos: -s and -c in quadrants 1 and 2 */
    *cos = vd_flip(vd_add(t, vd_set1(1.0)), 1, turned);
}

#endif
