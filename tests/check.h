#ifndef CHECK_H
#define CHECK_H
/* The few macros our tests share. A test is a program: it prints what fails and exits with the number of failures. */

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_failed, check_count;

/* CHECK(condition, "printf text", ...): the text names the case. */
#define CHECK(ok, ...) do { \
    check_count++; \
    if (!(ok) && check_failed++ < 20) { \
        fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #ok); fprintf(stderr, __VA_ARGS__); fputc('\n', stderr); \
    } \
} while (0)

/* A test that has nothing to do here ends with this: ctest shows it as skipped. */
static inline int check_skipped(void) { return check_failed + check_count == 0 ? 77 : 1; }

#define DONE() (fprintf(stderr, "%d checks, %d failed\n", check_count, check_failed), check_failed != 0 || check_count == 0)

/* A seeded generator, so that a failing case can be named (Steele, Lea and Flood 2014, splitmix64). */
static inline uint64_t rnd_u64(uint64_t *s) {
    uint64_t z = *s += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30)*0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27)*0x94d049bb133111ebu;
    return z ^ z >> 31;
}
static inline float rnd_f32(uint64_t *s) { return (float) (rnd_u64(s) >> 40)*0x1p-23f - 1.0f; }   /* [-1, 1) */

/* Memory and time are not the program's own under a sanitizer or an emulator. */
#if defined(EMULATOR) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Under the thread sanitizer, some fifty times slower, the question is who writes what when; values are for the other builds. */
#ifdef __SANITIZE_THREAD__
#define ONLY_RACES 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ONLY_RACES 1
#endif
#endif
#ifndef ONLY_RACES
#define ONLY_RACES 0
#endif

#endif
