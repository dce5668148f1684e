#include "base/script.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"

#define BLANK " \t"

static char *shrunk(const char *text, size_t length)
{
    while (length && strchr(BLANK, text[length - 1]))
        length--;
    return xstrndup(text, length);
}

int script_interpreter(const char *text, char **interpreter, char **argument, struct error *err)
{
    const char *end = text + strcspn(text, "\r\n"), *begin, *rest;

    if (strncmp(text, "#!", 2) != 0)
        return error_set(
            err, EINVAL,
            "a script begins with '#!' and its interpreter; a job file's name ends in .rad; a program goes after '--'");
    begin = text + 2 + strspn(text + 2, BLANK);
    if (*begin != '/')
        return error_set(err, EINVAL, "'#!' needs the whole path of an interpreter, e.g. #!/bin/sh");
    rest = begin + strcspn(begin, BLANK "\r\n");
    *interpreter = xstrndup(begin, (size_t)(rest - begin));
    rest += strspn(rest, BLANK);
    *argument = rest < end ? shrunk(rest, (size_t)(end - rest)) : NULL;
    return 0;
}
