/* The codebooks as the kernels of instruction sets read them: one load for the values of an entry. */

#include "codes.h"

uint64_t book_iq2_xxs[256], book_iq2_xs[512], book_iq2_s[1024], book_iq1[2048];
uint32_t book_iq3_xxs[256], book_iq3_s[512];
uint64_t book_signs[128];
float    book_e4m3[256];

/* An entry of fields of `bits` bits, the first lowest, with a byte for each: the first again lowest. */
static uint64_t values_of(unsigned entry, int bits, const int8_t *value) {
    uint64_t bytes = 0;
    for (int i = 0; i < 16/bits && i < 8; i++) bytes |= (uint64_t) (uint8_t) value[entry >> bits*i & ((1u << bits) - 1)] << 8*i;
    return bytes;
}

static void fill_8(uint64_t *book, const uint16_t *grid, int n, const int8_t value[4]) {
    for (int i = 0; i < n; i++) book[i] = values_of(grid[i], 2, value);
}
static void fill_4(uint32_t *book, const uint16_t *grid, int n, const int8_t value[16]) {
    for (int i = 0; i < n; i++) book[i] = (uint32_t) values_of(grid[i], 4, value);
}

void books_fill(void) {
    static const int8_t iq2[4] = { 8, 25, 43 }, iq1[4] = { 0, 8, 16 }, signs[2] = { 1, -1 };
    static const int8_t iq3_xxs[16] = { 4, 12, 20, 28, 36, 44, 52, 62 }, iq3_s[16] = { 1, 3, 5, 7, 9, 11, 13, 15 };
    fill_8(book_iq2_xxs, grid_iq2_xxs,  256, iq2);
    fill_8(book_iq2_xs,  grid_iq2_xs,   512, iq2);
    fill_8(book_iq2_s,   grid_iq2_s,   1024, iq2);
    fill_8(book_iq1,     grid_iq1_s,   2048, iq1);
    fill_4(book_iq3_xxs, grid_iq3_xxs,  256, iq3_xxs);
    fill_4(book_iq3_s,   grid_iq3_s,    512, iq3_s);
    for (unsigned i = 0; i < 128; i++) book_signs[i] = values_of(even_signs(i), 1, signs);
    for (unsigned i = 0; i < 256; i++) book_e4m3[i] = e4m3_half((uint8_t) i);
}
