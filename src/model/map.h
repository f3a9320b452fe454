#ifndef MAP_H
#define MAP_H
/* The bytes of a model file, used where the system's page cache has them.
 *
 * A file is opened, then mapped if it can be; reading works either way. All failures are told by one log line that names
 * the file. The mapping is shared and read-only: processes that use the same file share its memory. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct file {
    char          *name;    /* for messages, owned; NULL: not open */
    int            fd;
    size_t         size;
    unsigned char *data;    /* [size], page-aligned; NULL where the system refused a mapping */
};

bool file_open(struct file *f, const char *path);           /* a regular file that can be read */
bool file_open_stream(struct file *f, FILE *stream);        /* the same; the caller keeps the stream and its position */
/* Keeps these bytes in memory, until they are unmapped or freed. Refused: one warning that names the file. */
void memory_lock(const struct file *f, const void *bytes, size_t size);
/* Up to `size` bytes at `offset`; fewer at the end of the file or on a read error. */
size_t file_read(const struct file *f, void *bytes, uint64_t offset, size_t size);
void file_unmap(struct file *f);                             /* reading goes on working */
void file_close(struct file *f);                            /* also of a zeroed or half-open one */
bool file_is_special(const char *path);                     /* is there, and no regular file: a device, a pipe, a link */

#endif
