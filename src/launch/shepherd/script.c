#include "launch/shepherd/script.h"

#include <errno.h>
#include <fcntl.h>
#include <endian.h>
#include <limits.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <linux/xattr.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/script.h"

#define NAMELESS "script" /* a script that came by a pipe, or has an impossible file name */

/* Scripts look at their own name, so the copy has it. */
static const char *name_of(const char *typed)
{
    const char *slash = strrchr(typed, '/'), *name = slash ? slash + 1 : typed;
    size_t length = strlen(name);

    return length == 0 || length > NAME_MAX || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
                   strcmp(name, "-") == 0
               ? NAMELESS
               : name;
}

static int write_all(int fd, const char *text, size_t length)
{
    while (length) {
        ssize_t count = write(fd, text, length);
        if (count < 0 && errno != EINTR)
            return -1;
        text += count > 0 ? count : 0;
        length -= count > 0 ? (size_t)count : 0;
    }
    return 0;
}

#define ACL_ENTRY(tag, rights, whose)                                                                                  \
    {                                                                                                                  \
        htole16(tag), htole16(rights), htole32(whose)                                                                  \
    }

/* Only the job's user enters the directory, and finds no file there but by its name. It stays the daemon's: its owner
 * could put a name, or a file system, into it. Where the file system has no such lists everybody may enter. */
static int let_in(const char *path, uid_t uid)
{
    const struct {
        struct posix_acl_xattr_header head;
        struct posix_acl_xattr_entry entries[5];
    } list = {{htole32(POSIX_ACL_XATTR_VERSION)},
              {ACL_ENTRY(ACL_USER_OBJ, ACL_READ | ACL_WRITE | ACL_EXECUTE, ACL_UNDEFINED_ID),
               ACL_ENTRY(ACL_USER, ACL_EXECUTE, uid), ACL_ENTRY(ACL_GROUP_OBJ, 0, ACL_UNDEFINED_ID),
               ACL_ENTRY(ACL_MASK, ACL_EXECUTE, ACL_UNDEFINED_ID), ACL_ENTRY(ACL_OTHER, 0, ACL_UNDEFINED_ID)}};

    if (uid == geteuid() || setxattr(path, XATTR_NAME_POSIX_ACL_ACCESS, &list, sizeof list, 0) == 0)
        return 0;
    return errno == EOPNOTSUPP ? chmod(path, 0711) : -1;
}

int script_write(const struct shepherd_request *request, struct error *err)
{
    const char *path = request->script_words[2];
    CLEANUP(close_fd) int fd = -1;

    if (!request->script)
        return 0;
    /* of a shepherd that was killed there may be one */
    file_remove_tree(request->script_directory);
    if (mkdir(request->script_directory, 0700) < 0 || let_in(request->script_directory, request->uid) < 0 ||
        (fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0 ||
        write_all(fd, request->script, strlen(request->script)) < 0 ||
        (request->uid != geteuid() && fchown(fd, request->uid, request->gid) < 0) || fchmod(fd, 0500) < 0)
        return error_set(err, errno, "cannot write the copy of its script, '%s': %s", path, strerror(errno));
    return 0;
}

int script_place(struct shepherd_request *request, struct error *err)
{
    char **words = request->script_words, **arguments;
    size_t count = 0;
    int rc;

    if (!request->script)
        return 0;
    rc = script_interpreter(request->script, &words[0], &words[1], err);
    if (rc)
        return rc;
    words[2] = xasprintf("%s/%s", request->script_directory, name_of(request->arguments[0]));
    arguments = xcalloc(array_size(request->script_words) + request->argument_count, sizeof *arguments);
    for (size_t i = 0; i < array_size(request->script_words); i++)
        if (words[i])
            arguments[count++] = words[i];
    for (size_t i = 1; i < request->argument_count; i++)
        arguments[count++] = request->arguments[i];
    free(request->arguments);
    request->arguments = arguments;
    request->argument_count = count;
    return 0;
}

void script_remove(const struct shepherd_request *request)
{
    if (request->script)
        file_remove_tree(request->script_directory);
}
