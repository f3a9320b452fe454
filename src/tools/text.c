/* Text from outside and text for people and programs: reading it whole, showing it on one line, printing it as JSON. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

bool text_append(char **text, size_t *length, size_t *room, const char *bytes, size_t n) {
    if (*length + n + 1 > *room) {
        const size_t more = 2*(*length + n + 1);
        char *grown = realloc(*text, more);
        if (!grown) return false;
        *text = grown;
        *room = more;
    }
    memcpy(*text + *length, bytes, n);
    (*text)[*length += n] = 0;
    return true;
}

/* What is wrong with n more bytes of a text that has `length`; NULL: nothing. */
static const char *fault(const char *bytes, size_t n, size_t length) {
    if (memchr(bytes, 0, n))    return "a zero byte is no text";
    if (n > TEXT_MAX - length)  return "longer than a text may be (256 MiB)";
    return NULL;
}

char *text_of_file(const char *path) {
    const bool standard = !strcmp(path, "-");
    const char *name = standard ? "stdin" : path, *wrong = NULL;
    FILE *f = standard ? stdin : fopen(path, "rb");
    if (!f) { fail("%s: %s", path, strerror(errno)); return NULL; }
    char *text = NULL, chunk[1 << 14];
    size_t length = 0, room = 0, n = 0;
    do {
        wrong = fault(chunk, n, length);
        if (!wrong && !text_append(&text, &length, &room, chunk, n)) wrong = "out of memory";
    } while (!wrong && !feof(f) && (n = fread(chunk, 1, sizeof chunk, f)) > 0);     /* a terminal would go on behind its end */
    if (!wrong && ferror(f)) wrong = strerror(errno);
    if (wrong) fail("%s: %s", name, wrong);
    if (!standard) fclose(f);
    if (wrong) { free(text); return NULL; }
    return text;
}

char *text_choose(const char *command, const char *option, const char *text, const char *file, int *status) {
    *status = 1;
    if (text && file) { *status = usage("%s: %s and -f exclude each other", command, option); return NULL; }
    if (!text) return text_of_file(file ? file : "-");
    char *copy = NULL;
    size_t length = 0, room = 0;
    if (!text_append(&copy, &length, &room, text, strlen(text))) fail("out of memory");
    return copy;
}

char *line_read(FILE *f, bool *failed) {
    char *line = NULL;
    size_t length = 0, room = 0;
    const char *wrong = NULL;
    int c;
    while (!wrong && (c = getc(f)) != EOF && c != '\n') {
        const char byte = (char) c;
        wrong = fault(&byte, 1, length);
        if (!wrong && !text_append(&line, &length, &room, &byte, 1)) wrong = "out of memory";
    }
    if (!wrong && ferror(f) && errno != EINTR) wrong = strerror(errno);
    if (!wrong && c == '\n' && !line && !text_append(&line, &length, &room, "", 0)) wrong = "out of memory";
    *failed = wrong != NULL;
    if (!wrong) return line;
    fail("stdin: %s", wrong);
    free(line);
    return NULL;
}

/* ---- UTF-8 ---- */

/* Bytes of the well-formed sequence that p begins with (Unicode 15, table 3-7); 0: there is none. */
static int sequence(const unsigned char *p) {
    static const struct { unsigned char low, high, second_low, second_high; int n; } forms[] = {
        { 0x01, 0x7f, 0,    0,    1 }, { 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 }, { 0xe1, 0xec, 0x80, 0xbf, 3 },
        { 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 }, { 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 },
        { 0xf4, 0xf4, 0x80, 0x8f, 4 },
    };
    for (size_t i = 0; i < sizeof forms/sizeof *forms; i++) {
        if (p[0] < forms[i].low || p[0] > forms[i].high) continue;
        if (forms[i].n == 1) return 1;
        if (p[1] < forms[i].second_low || p[1] > forms[i].second_high) return 0;
        for (int k = 2; k < forms[i].n; k++) if ((p[k] & 0xc0) != 0x80) return 0;
        return forms[i].n;
    }
    return 0;
}

/* What a terminal would act on, or is no character. */
static bool is_control(const unsigned char *p, int n) { return n == 0 || *p < 32 || *p == 127 || (*p == 0xc2 && p[1] < 0xa0); }

void text_put(FILE *f, const char *text, size_t most) {
    const unsigned char *p = (const unsigned char *) text, *const end = p + strlen(text);
    while (p < end) {
        const int n = sequence(p);
        const bool control = is_control(p, n);
        const size_t step = n ? (size_t) n : 1;
        if (step > most) { fputs("...", f); return; }
        most -= step;
        if (control) fputc('.', f);
        else         fwrite(p, 1, step, f);
        p += step;
    }
}

void xml_put(FILE *f, const char *text) {
    for (const unsigned char *p = (const unsigned char *) text; *p; ) {
        const int n = sequence(p);
        if (is_control(p, n)) fputc('.', f);
        else if (*p == '&')   fputs("&amp;", f);
        else if (*p == '<')   fputs("&lt;", f);
        else if (*p == '>')   fputs("&gt;", f);
        else                  fwrite(p, 1, (size_t) n, f);
        p += n ? n : 1;
    }
}

char *json_text(cJSON *json) {
    char *printed = json ? cJSON_Print(json) : NULL, *out = printed ? malloc(3*strlen(printed) + 1) : NULL, *to = out;
    cJSON_Delete(json);
    for (const char *p = printed; out && *p; ) {
        const int n = sequence((const unsigned char *) p);
        memcpy(to, n ? p : "\xef\xbf\xbd", n ? (size_t) n : 3);     /* U+FFFD for a byte that is no character */
        to += n ? n : 3;
        p  += n ? n : 1;
    }
    if (out) *to = 0;
    cJSON_free(printed);
    return out;
}

int print_json(cJSON *json) {
    char *text = json_text(json);
    if (!text) return fail("out of memory");
    const bool ok = puts(text) >= 0 && !fflush(stdout);
    free(text);
    return ok ? 0 : fail("writing the result: %s", strerror(errno));
}
