#include "base/trust/token.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

/* The checks are on the opened file; its name may change meanwhile. */
static int check_file(int fd, const char *path, struct token *token, struct error *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return error_set(err, errno, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return error_set(err, EINVAL, "%s: is not a regular file: a token is read from one", path);
    if (st.st_mode & 077)
        return error_set(err, EPERM, "%s: its mode is %04o, so that others could use the token: chmod 600 it", path,
                         (unsigned)st.st_mode & 07777);
    if (st.st_uid != geteuid() && st.st_uid != 0 && geteuid() != 0)
        return error_set(err, EPERM, "%s: belongs to uid %u: take a token of your own", path, (unsigned)st.st_uid);
    token->owner = st.st_uid;
    return 0;
}

/* One line, with or without its end. */
static int take_text(const char *path, const char *text, size_t count, struct token *token, struct error *err)
{
    const char *end = memchr(text, '\n', count);
    size_t length = end ? (size_t)(end - text) : count;

    for (size_t i = 0; i < length; i++)
        if (text[i] < '!' || text[i] > '~')
            return error_set(err, EINVAL, "%s: byte %zu is not a visible character: a token has no others", path,
                             i + 1);
    if (end && length + 1 < count)
        return error_set(err, EINVAL, "%s: holds more than one line: a token is one", path);
    if (length < TOKEN_MIN || length > TOKEN_MAX)
        return error_set(err, EINVAL,
                         "%s: a token has %d to %d characters: write a random one, as of `openssl rand -hex 32`", path,
                         TOKEN_MIN, TOKEN_MAX);
    memcpy(token->text, text, length);
    return 0;
}

int token_read(const char *path, struct token *token, struct error *err)
{
    CLEANUP(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    char text[TOKEN_MAX + 2]; /* with the line's end and, where there is more, a byte of it */
    ssize_t count;
    int rc;

    *token = (struct token){0};
    if (fd < 0)
        return error_set(err, errno, "%s: the token cannot be read: %s", path, strerror(errno));
    rc = check_file(fd, path, token, err);
    if (rc)
        return rc;
    count = read(fd, text, sizeof text);
    if (count < 0)
        return error_set(err, errno, "%s: the token cannot be read: %s", path, strerror(errno));
    return take_text(path, text, (size_t)count, token, err);
}

bool token_matches(const struct token *token, const char *text)
{
    size_t length = strnlen(text, TOKEN_MAX + 1);
    char padded[TOKEN_MAX + 1] = {0};
    volatile unsigned char difference = length > TOKEN_MAX;

    memcpy(padded, text, length <= TOKEN_MAX ? length : 0);
    for (size_t i = 0; i < sizeof padded; i++)
        difference |= (unsigned char)(padded[i] ^ token->text[i]);
    return !difference;
}
