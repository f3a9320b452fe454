/* Runs a fuzz target over files: every corpus is a test in every build, without a fuzzer. Arguments: files or directories. */

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run(const char *path) {
    FILE *f = fopen(path, "rb");
    size_t n = 0, size = 1 << 16;
    uint8_t *p = malloc(size);
    for (size_t got; f && p && (got = fread(p + n, 1, size - n, f)) > 0; ) {
        n += got;
        if (n == size) p = realloc(p, size *= 2);
    }
    if (!f || !p) return fprintf(stderr, "%s cannot be read\n", path), 1;
    fclose(f);
    uint8_t *exact = malloc(n ? n : 1);                         /* so that a sanitizer sees the first byte beyond */
    for (size_t i = 0; i < n; i++) exact[i] = p[i];
    free(p);
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
    return 0;
}

int main(int argc, char **argv) {
    int failed = 0, files = 0;
    for (int i = 1; i < argc; i++) {
        DIR *dir = opendir(argv[i]);
        if (!dir) { failed += run(argv[i]), files++; continue; }
        for (const struct dirent *e; (e = readdir(dir)); ) {
            char path[4096];
            if (e->d_name[0] == '.') continue;
            snprintf(path, sizeof path, "%s/%s", argv[i], e->d_name);
            failed += run(path), files++;
        }
        closedir(dir);
    }
    fprintf(stderr, "%d files, %d failed\n", files, failed);
    return failed != 0 || files == 0;
}
