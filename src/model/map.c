/* File mapping and reading for POSIX systems: the one file of the model library that knows the operating system's files. */

#if defined(__linux__) && !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE                             /* madvise */
#endif
#include "map.h"

#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fail(struct file *f, const char *name, const char *why) {
    log_error("%s: %s", name, why);
    file_close(f);
    return false;
}

/* Takes over the descriptor. */
static bool open_fd(struct file *f, int fd, const char *name) {
    *f = (struct file) { .fd = fd };
    const size_t length = strlen(name) + 1;
    struct stat st;
    if (!(f->name = malloc(length)))            { close(fd); log_error("%s: out of memory", name); return false; }
    memcpy(f->name, name, length);
    if (fstat(fd, &st))                         return fail(f, name, strerror(errno));
    if (!S_ISREG(st.st_mode))                   return fail(f, name, "not a regular file");
    if ((uint64_t) st.st_size > SIZE_MAX/2)     return fail(f, name, "larger than the address space");
    f->size = (size_t) st.st_size;
    if (f->size) {
        void *data = mmap(NULL, f->size, PROT_READ, MAP_SHARED, fd, 0);
        f->data = data == MAP_FAILED ? NULL : data;
#ifdef MADV_HUGEPAGE
        /* What is not in the page cache yet comes in as huge pages, here and for later processes: generation reads all of it for
         * every token, and small pages cost a look-up each 4 KB. Not necessary, so nobody asks whether it is granted. */
        if (f->data) madvise(data, f->size, MADV_HUGEPAGE);
#endif
    }
    return true;
}

bool file_open(struct file *f, const char *path) {
    *f = (struct file) { 0 };
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);       /* a pipe is refused, not waited for */
    if (fd < 0) {
        log_error("%s: %s", path, strerror(errno));
        return false;
    }
    return open_fd(f, fd, path);
}

bool file_open_stream(struct file *f, FILE *stream) {
    *f = (struct file) { 0 };
    const int fd = dup(fileno(stream));
    if (fd < 0) {
        log_error("model stream: %s", strerror(errno));
        return false;
    }
    return open_fd(f, fd, "model stream");
}

bool file_is_special(const char *path) {
    struct stat st;
    return !lstat(path, &st) && !S_ISREG(st.st_mode);
}

void memory_lock(const struct file *f, const void *bytes, size_t size) {
    if (mlock(bytes, size)) {
        log_warn("%s: the system refuses to lock %zu bytes in memory (%s); continuing without", f->name, size,
                 strerror(errno));
    }
}

size_t file_read(const struct file *f, void *bytes, uint64_t offset, size_t size) {
    if (offset >= f->size) return 0;
    if (size > f->size - offset) size = f->size - (size_t) offset;
    if (f->data) {
        memcpy(bytes, f->data + offset, size);
        return size;
    }
    size_t done = 0;
    while (done < size) {
        const ssize_t n = pread(f->fd, (char *) bytes + done, size - done, (off_t) (offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        done += (size_t) n;
    }
    return done;
}

void file_unmap(struct file *f) {
    if (f->data) munmap(f->data, f->size);
    f->data = NULL;
}

void file_close(struct file *f) {
    if (!f->name) return;
    file_unmap(f);
    close(f->fd);
    free(f->name);
    *f = (struct file) { 0 };
}
