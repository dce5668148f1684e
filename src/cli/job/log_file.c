#include "cli/job/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "cli/show/answer.h"

static char *expand_id(const char *path, uint64_t id)
{
    struct strbuf out = {0};

    for (const char *p = path; *p; p++) {
        if (p[0] == '%' && p[1] == 'j') {
            strbuf_printf(&out, "%" PRIu64, id);
            p++;
        } else {
            strbuf_append(&out, p, 1);
        }
    }
    return strbuf_steal(&out);
}

char *log_file_path(const json_t *job, bool error, uint64_t id)
{
    const char *path = error && answer_text(job, "error") ? answer_text(job, "error") : answer_text(job, "output");

    return path ? expand_id(path, id) : NULL;
}

int log_file_open(const char *path, int *fd, struct error *err)
{
    struct stat st;

    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0)
        return error_set(err, errno, "%s: %s", path, strerror(errno));
    if (fstat(*fd, &st) == 0 && S_ISREG(st.st_mode))
        return 0;
    close_fd(fd);
    *fd = -1;
    return error_set(err, EINVAL, "%s is not a regular file: it cannot be printed", path);
}

ssize_t log_file_read(int fd, char *block, size_t size, struct error *err)
{
    struct stat st;
    ssize_t count;

    if (fstat(fd, &st) == 0 && st.st_size < lseek(fd, 0, SEEK_CUR))
        lseek(fd, 0, SEEK_SET);
    count = read(fd, block, size);
    return count < 0 ? error_set(err, errno, "cannot read the job's output: %s", strerror(errno)) : count;
}
