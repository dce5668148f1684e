#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text/printable.h"

int error_set(struct error *err, int code, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
    }
    return -abs(code);
}

int error_set_at(struct error *err, const char *file, unsigned line, const char *format, ...)
{
    struct error text;
    va_list args;

    va_start(args, format);
    vsnprintf(text.text, sizeof text.text, format, args);
    va_end(args);
    return error_set(err, EINVAL, "%s:%u: %s", file, line, text.text);
}

void error_prefix(struct error *err, const char *format, ...)
{
    struct error context, inner;
    va_list args;

    if (!err)
        return;
    inner = *err;
    va_start(args, format);
    vsnprintf(context.text, sizeof context.text, format, args);
    va_end(args);
    error_set(err, 0, "%s: %s", context.text, inner.text);
}

void error_make_printable(struct error *err)
{
    if (err)
        printable_replace(err->text);
}

bool error_is_passing(int code)
{
    return code == -ENOSPC || code == -EDQUOT || code == -ENOMEM || code == -EAGAIN || code == -EMFILE ||
           code == -ENFILE;
}
