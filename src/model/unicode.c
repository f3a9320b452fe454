/* UTF-8 (RFC 3629: no surrogates, no overlong forms, nothing above U+10FFFF) and character classes: a table for ASCII, a
 * binary search among runs for the rest. */

#include "unicode.h"

#define A(code, kind)
#define R(code, kind) (uint32_t) (0x##code << 4 | CHAR_##kind),
static const uint32_t runs[] = {
#include "unicode.def"
};
#undef A
#undef R
#define A(code, kind) [0x##code] = CHAR_##kind,
#define R(code, kind)
static const uint8_t ascii[128] = {
#include "unicode.def"
};
#undef A
#undef R

enum { REPLACEMENT = 0xfffd };

static uint8_t class_of(uint32_t code) {
    size_t low = 0, high = sizeof runs/sizeof *runs;
    while (high - low > 1) {
        const size_t middle = (low + high)/2;
        if (runs[middle] >> 4 <= code) low = middle;
        else                           high = middle;
    }
    return runs[low] & 15;
}

static uint32_t decode(const unsigned char *p, size_t left, uint8_t *length) {
    *length = 1;
    if (p[0] < 0x80) return p[0];
    const uint8_t n = p[0] < 0xc2 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 1;
    if (n == 1 || n > left) return REPLACEMENT;
    const uint8_t least = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
    const uint8_t most  = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
    if (p[1] < least || p[1] > most) return REPLACEMENT;
    uint32_t code = p[0] & (0x7fu >> n);
    for (uint8_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) return REPLACEMENT;
        code = code << 6 | (p[i] & 0x3fu);
    }
    *length = n;
    return code;
}

size_t char_length(const char *text, size_t left) {
    uint8_t length;
    if (left == 0) return 0;
    decode((const unsigned char *) text, left, &length);
    return length;
}

struct character char_at(const char *text, size_t left) {
    struct character c = { 0, CHAR_OTHER, 0 };
    if (left == 0) return c;
    c.code = decode((const unsigned char *) text, left, &c.length);
    c.kind = c.code < 128 ? ascii[c.code] : class_of(c.code);
    return c;
}
