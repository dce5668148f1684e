/* The file is one line of fixed length, with a digest at its end: whoever reads it while it is written, or after a
 * power cut, sees the old one, the new one, or one that is damaged. */
#include "store/mark.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/memory.h"

#define LINE_MOST 256

/* Its length is the same for all values. */
static size_t print(const struct store_mark *mark, char line[static LINE_MOST])
{
    int length =
        snprintf(line, LINE_MOST,
                 "carma-mark 1 salt %08" PRIx32 "%08" PRIx32 " frames %010" PRIu32 " sum %08" PRIx32 "%08" PRIx32
                 " record %020" PRIu64 " job %020" PRIu64,
                 mark->salt[0], mark->salt[1], mark->frames, mark->sum[0], mark->sum[1], mark->seq, mark->last_job);

    return (size_t)(length + snprintf(line + length, LINE_MOST - (size_t)length, " digest %016" PRIx64 "\n",
                                      digest_of_text(line)));
}

char *store_mark_path(const char *directory)
{
    return xasprintf("%s/store.mark", directory);
}

int store_mark_read(const char *directory, struct store_mark *mark, struct error *err)
{
    CLEANUP(free_ptr) char *path = store_mark_path(directory);
    CLEANUP(free_ptr) char *text = NULL;
    char line[LINE_MOST];
    size_t length;
    int rc = file_read(path, LINE_MOST, &text, &length, err);

    if (rc)
        return rc;
    if (sscanf(text,
               "carma-mark 1 salt %8" SCNx32 "%8" SCNx32 " frames %" SCNu32 " sum %8" SCNx32 "%8" SCNx32
               " record %" SCNu64 " job %" SCNu64,
               &mark->salt[0], &mark->salt[1], &mark->frames, &mark->sum[0], &mark->sum[1], &mark->seq,
               &mark->last_job) != 7 ||
        print(mark, line) != length || memcmp(line, text, length) != 0)
        return error_set(err, EBADMSG, "%s: is damaged", path);
    return 0;
}

int store_mark_make(const char *directory, const struct store_mark *mark, struct error *err)
{
    CLEANUP(free_ptr) char *path = store_mark_path(directory);
    CLEANUP(close_fd) int fd = -1;
    char line[LINE_MOST];
    int rc = file_write_atomic(path, line, print(mark, line), 0600, err);

    if (rc)
        return rc;
    fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        return error_set(err, errno, "%s: %s", directory, strerror(errno));
    return store_mark_open(directory, err);
}

int store_mark_open(const char *directory, struct error *err)
{
    CLEANUP(free_ptr) char *path = store_mark_path(directory);
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

    return fd < 0 ? error_set(err, errno, "%s: %s", path, strerror(errno)) : fd;
}

int store_mark_write(int fd, const struct store_mark *mark)
{
    char line[LINE_MOST];
    size_t length = print(mark, line);

    return pwrite(fd, line, length, 0) == (ssize_t)length ? 0 : errno ? -errno : -EIO;
}
