#include "cli/job/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "cli/job/owner_rights.h"
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

int64_t log_file_owner(const json_t *job)
{
    return answer_integer(job, "uid", -1);
}

/* Opening a device may do something, so what is there is looked at first. */
static int open_regular(const char *path, struct error *err)
{
    CLEANUP(close_fd) int name = open(path, O_PATH | O_CLOEXEC);
    CLEANUP(free_ptr) char *again = NULL;
    struct stat st;
    int fd = name;

    if (name >= 0) {
        if (fstat(name, &st) < 0 || !S_ISREG(st.st_mode))
            return error_set(err, EINVAL, "%s is not a regular file: it cannot be printed", path);
        again = xasprintf("/proc/self/fd/%d", name);
        fd = open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    }
    return fd < 0 ? error_set(err, errno, "%s: %s", path, strerror(errno)) : fd;
}

int log_file_open(const char *path, int64_t owner, int *fd, struct error *err)
{
    struct owner_rights rights;
    int rc = owner_rights_take(owner, &rights, err);

    if (rc < 0)
        return rc;
    rc = open_regular(path, err);
    owner_rights_give_back(&rights);
    if (rc < 0)
        return rc;
    *fd = rc;
    return 0;
}

/* As those of /proc, which a link may lead to: they would be printed again and again. */
static bool has_no_size(int fd, const struct stat *st)
{
    char byte;

    return st->st_size == 0 && pread(fd, &byte, 1, 0) == 1;
}

ssize_t log_file_read(int fd, char *block, size_t size, struct error *err)
{
    struct stat st;
    ssize_t count;

    if (fstat(fd, &st) == 0 && st.st_size < lseek(fd, 0, SEEK_CUR) && !has_no_size(fd, &st)) /* it was cut */
        lseek(fd, 0, SEEK_SET);
    count = read(fd, block, size);
    return count < 0 ? error_set(err, errno, "cannot read the job's output: %s", strerror(errno)) : count;
}
