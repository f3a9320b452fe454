/* The definition of the attention kernels, in plain C. */

#include "attention.h"
#include "../../simd/c.h"
#include "../elementary.h"

static uint64_t mask_floats(int n, const uint16_t *f16, float *mask) {
    uint64_t live = 0;
    for (int j = 0; j < ATTENTION_KEYS; j++) {
        mask[j] = j >= n ? -INFINITY : f16 ? f16_to_f32(f16[j]) : 0.0f;
        live |= (uint64_t) (mask[j] != -INFINITY) << j;
    }
    return live;
}

static const float *float_row(const void *rows, int64_t j, size_t stride) {
    return (const float *) (const void *) ((const char *) rows + (size_t) j*stride);
}
static const uint16_t *half_row(const void *rows, int64_t j, size_t stride) {
    return (const uint16_t *) (const void *) ((const char *) rows + (size_t) j*stride);
}

/* Where element i of a row of dk goes when it is turned. */
static int64_t turned(int64_t dk, int64_t i) {
    static const int place[8] = { 0, 4, 2, 6, 1, 5, 3, 7 };
    const int64_t lane = i % 16;
    return (place[lane%8]*(dk/16) + i/16)*2 + lane/8;
}
static void turn(int64_t dk, int n, const void *k, size_t stride, float *kt) {
    for (int j = 0; j < ATTENTION_KEYS; j++) for (int64_t i = 0; i < dk; i++) {
        kt[(j/16*dk + turned(dk, i))*16 + j%16] = j < n ? float_row(k, j, stride)[i] : 0.0f;
    }
}
static void turn_row(int64_t dk, const float *q, float *qt) {
    for (int64_t i = 0; i < dk; i++) qt[turned(dk, i)] = q[i];
}

static float fold(float lanes[16]) {
    for (int w = 8; w > 0; w /= 2) for (int l = 0; l < w; l++) lanes[l] += lanes[l + w];
    return lanes[0];
}
static void scores_turned(int64_t dk, int rows, const float *qt, const float *kt, uint64_t any, float (*s)[ATTENTION_KEYS]) {
    for (int r = 0; r < rows; r++) for (int j = 0; j < ATTENTION_KEYS; j++) {
        if (!(any >> j/16*16 & 0xffff)) continue;
        float lanes[16] = { 0 };
        for (int64_t i = 0; i < dk; i++) {
            const int64_t t = turned(dk, i);
            lanes[i % 16] = fmaf(qt[r*dk + t], kt[(j/16*dk + t)*16 + j%16], lanes[i % 16]);
        }
        s[r][j] = fold(lanes);
    }
}
static void scores_f32(int64_t dk, int rows, const float *q, const void *k, size_t stride, uint64_t any, float (*s)[ATTENTION_KEYS]) {
    for (int r = 0; r < rows; r++) for (int j = 0; j < ATTENTION_KEYS; j++) {
        if (!(any >> j & 1)) continue;
        float lanes[16] = { 0 };
        for (int64_t i = 0; i < dk; i++) lanes[i % 16] = fmaf(float_row(k, j, stride)[i], q[r*dk + i], lanes[i % 16]);
        s[r][j] = fold(lanes);
    }
}
static void scores_f16(int64_t dk, int rows, const float *q, const void *k, size_t stride, uint64_t any, float (*s)[ATTENTION_KEYS]) {
    for (int r = 0; r < rows; r++) for (int j = 0; j < ATTENTION_KEYS; j++) {
        if (!(any >> j & 1)) continue;
        float lanes[16] = { 0 };
        for (int64_t i = 0; i < dk; i++) lanes[i % 16] = fmaf(f16_to_f32(half_row(k, j, stride)[i]), q[r*dk + i], lanes[i % 16]);
        s[r][j] = fold(lanes);
    }
}

static float weights(float *s, const float *mask, float slope, float scale, float cap, float *max) {
    float top[16], sum[16] = { 0 };
    for (int l = 0; l < 16; l++) top[l] = -INFINITY;
    for (int j = 0; j < ATTENTION_KEYS; j++) {
        const float bias = slope*mask[j], z = cap != 0.0f ? fmaf(cap, v_tanh(s[j]*(scale/cap)), bias) : fmaf(s[j], scale, bias);
        s[j] = mask[j] == -INFINITY ? -INFINITY : z;
        top[j % 16] = vf_max(s[j], top[j % 16]);
    }
    for (int w = 8; w > 0; w /= 2) for (int l = 0; l < w; l++) top[l] = vf_max(top[l + w], top[l]);
    for (int j = 0; j < ATTENTION_KEYS; j++) sum[j % 16] += s[j] = v_exp(s[j] - top[0]);
    *max = top[0];
    return fold(sum);
}

static void weigh_f32(int64_t dv, int rows, const float (*p)[ATTENTION_KEYS], int j0, int j1, const void *v, size_t stride, float *a) {
    for (int r = 0; r < rows; r++) for (int j = j0; j < j1; j++) {
        for (int64_t d = 0; d < dv; d++) a[r*dv + d] = fmaf(p[r][j], float_row(v, j, stride)[d], a[r*dv + d]);
    }
}
static void weigh_f16(int64_t dv, int rows, const float (*p)[ATTENTION_KEYS], int j0, int j1, const void *v, size_t stride, float *a) {
    for (int r = 0; r < rows; r++) for (int j = j0; j < j1; j++) {
        for (int64_t d = 0; d < dv; d++) a[r*dv + d] = fmaf(p[r][j], f16_to_f32(half_row(v, j, stride)[d]), a[r*dv + d]);
    }
}

static void merge(int64_t dv, float *acc, float *max, float *sum, const float *a, float m, float l) {
    const float e = v_exp(-fabsf(*max - m)), f = m > *max ? e : 1.0f, g = m > *max ? 1.0f : e;
    for (int64_t d = 0; d < dv; d++) acc[d] = fmaf(a[d], g, acc[d]*f);
    *sum = fmaf(l, g, *sum*f);
    *max = vf_max(m, *max);
}

const struct attention_kernels attention_kernels_portable = {
    4, mask_floats, turn, turn_row, scores_turned, scores_f32, scores_f16, weights, weigh_f32, weigh_f16, merge
};
