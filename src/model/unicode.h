#ifndef MODEL_UNICODE_H
#define MODEL_UNICODE_H
/* Reading UTF-8 and the classes of characters that the tokenizers tell apart. The classes come from the Unicode Character
 * Database by way of unicode.def. */

#include <stddef.h>
#include <stdint.h>

enum char_class {
    CHAR_UPPER, CHAR_LOWER, CHAR_LETTER, CHAR_MARK, CHAR_NUMBER, CHAR_PUNCT, CHAR_SYMBOL, CHAR_SPACE, CHAR_OTHER,
};

/* One character of a text. A byte that begins no valid UTF-8 sequence is a character of its own, with the code and class
 * of U+FFFD, so that every byte of any text belongs to exactly one character. */
struct character {
    uint32_t code;
    uint8_t  kind;          /* enum char_class */
    uint8_t  length;        /* bytes, 1 .. 4; 0: end of text */
};

/* The character at the start of `left` bytes. */
struct character char_at(const char *text, size_t left);

/* Its length alone. */
size_t char_length(const char *text, size_t left);

#endif
