/* Whole small files. */
#ifndef CARMA_BASE_FILE_H
#define CARMA_BASE_FILE_H

#include <stddef.h>

#include "base/error.h"

/* Reads a regular file (or pipe) of at most `limit` bytes into *text (owned by the caller, NUL-terminated; *length
 * excludes the NUL). -EFBIG when there is more; never reads further than limit + 1 bytes. A FIFO that nobody has open
 * for writing is read as empty: it is not waited for. */
int file_read(const char *path, size_t limit, char **text, size_t *length, struct error *err);

/* The same of an open descriptor, which stays open; `name` is for messages. */
int file_read_fd(int fd, const char *name, size_t limit, char **text, size_t *length, struct error *err);

/* A file in memory that holds the text, at its beginning: its reader never waits, and its writer has none to wait for.
 * The descriptor is the caller's, closed on exec; negative errno. `name` is for those who look at descriptors. */
int file_in_memory(const char *name, const char *text);

/* Writes via a temporary file beside it, fsync and rename: a reader sees the old or the new content, never a part. */
int file_write_atomic(const char *path, const void *bytes, size_t length, int mode, struct error *err);

/* The same without the fsync, for what is worth nothing after the machine has lost its power: it may be empty then. */
int file_replace(const char *path, const void *bytes, size_t length, int mode, struct error *err);

/* mkdir -p with `mode` for the directories that it makes. */
int file_make_dirs(const char *path, int mode, struct error *err);

/* rm -rf: as much of it as can be removed; follows no links. */
void file_remove_tree(const char *path);

const char *file_base_name(const char *path); /* borrowed from path */

#endif
