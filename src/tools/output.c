/* Files that commands write. A file takes its name only when it is whole; until then one of that name stays, and what a run that
 * failed has written is gone. A device, a pipe or a link is written as it is. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tool.h"

bool output_open(struct output *o, const char *path) {
    struct stat st;
    const bool as_it_is = lstat(path, &st) == 0 && !S_ISREG(st.st_mode);
    const size_t size = strlen(path) + sizeof ".part";
    *o = (struct output) { .path = path };
    if (!as_it_is) {
        if (!(o->part = malloc(size))) return !fail("out of memory");
        snprintf(o->part, size, "%s.part", path);
    }
    if ((o->file = fopen(o->part ? o->part : path, "wb")) != NULL) return true;
    fail("%s: %s", path, strerror(errno));
    free(o->part);
    return false;
}

bool output_close(struct output *o, bool whole) {
    bool ok = !ferror(o->file);
    if (fclose(o->file)) ok = false;
    if (ok && whole && o->part && rename(o->part, o->path)) ok = false;
    if (!ok) fail("%s: %s", o->path, strerror(errno));
    ok = ok && whole;
    if (!ok && o->part) remove(o->part);
    free(o->part);
    return ok;
}
