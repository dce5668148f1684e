#include "base/memory.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void *checked(void *pointer)
{
    if (!pointer) {
        static const char text[] = "carma: out of memory\n";
        if (write(STDERR_FILENO, text, sizeof text - 1) < 0) {
            /* nothing left to tell it to */
        }
        abort();
    }
    return pointer;
}

void *xmalloc(size_t size)
{
    return checked(malloc(size ? size : 1));
}

void *xcalloc(size_t count, size_t size)
{
    return checked(calloc(count ? count : 1, size ? size : 1));
}

void *xrealloc(void *old, size_t count, size_t size)
{
    size_t total;

    if (__builtin_mul_overflow(count, size, &total))
        checked(NULL);
    return checked(realloc(old, total ? total : 1));
}

char *xstrdup(const char *text)
{
    return text ? checked(strdup(text)) : NULL;
}

char *xstrndup(const char *text, size_t length)
{
    return checked(strndup(text, length));
}

char *xvasprintf(const char *format, va_list args)
{
    char *text = NULL;

    return checked(vasprintf(&text, format, args) < 0 ? NULL : text);
}

char *xasprintf(const char *format, ...)
{
    va_list args;
    char *text;

    va_start(args, format);
    text = xvasprintf(format, args);
    va_end(args);
    return text;
}

void free_ptr(void *pointer_to_pointer)
{
    void **slot = pointer_to_pointer;

    free(*slot);
    *slot = NULL;
}

void close_fd(int *fd)
{
    int saved = errno;

    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    errno = saved;
}
