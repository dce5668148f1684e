/* What must be in the store, noted beside it: DIRECTORY/store.mark. After each commit, which SQLite has synced to its
 * write-ahead log (WAL), it is written in place and not synced. So it never claims more than was on the disk, and costs
 * a commit microseconds. A daemon that was killed leaves an exact one; after a power cut it may be some seconds old.
 *
 * SQLite itself ends a WAL where it is damaged, and begins without one that is missing. The mark tells the difference
 * from the end that it really had. Private to src/store. */
#ifndef CARMA_STORE_MARK_H
#define CARMA_STORE_MARK_H

#include <stdint.h>

#include "base/error.h"

struct store_mark {
    uint32_t salt[2];  /* of the WAL; each time that SQLite begins it anew, the first is one more */
    uint32_t frames;   /* up to the last commit; 0: the database was closed, and needs no WAL */
    uint32_t sum[2];   /* of the last of these frames: it depends on all bytes before it */
    uint64_t seq;      /* of the last record */
    uint64_t last_job; /* the highest number that was given */
};

/* The name of the file; owned by the caller. */
char *store_mark_path(const char *directory);

/* -ENOENT: there is none. -EBADMSG: it is damaged. */
int store_mark_read(const char *directory, struct store_mark *mark, struct error *err);

/* Makes it anew where it is missing: both are on the disk then. Its descriptor, for store_mark_write; or negative. */
int store_mark_make(const char *directory, const struct store_mark *mark, struct error *err);
int store_mark_open(const char *directory, struct error *err); /* one that is there */
int store_mark_write(int fd, const struct store_mark *mark);   /* not synced; 0 or a negative errno */

/* wal.c: whether the WAL of the database `path` has all that the mark says, or is a later one. -EBADMSG: not. */
int store_wal_check(const char *path, const struct store_mark *mark, struct error *err);

/* Sets the mark's salts, frames and sum to those of the WAL's first `frames` frames. */
int store_wal_note(int wal, uint32_t page_size, uint32_t frames, struct store_mark *mark);

#endif
