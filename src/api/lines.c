#include "api/lines.h"

#include <string.h>

#include "base/memory.h"

struct lines lines_of(const char *file, const char *text, size_t length)
{
    return (struct lines){.file = file, .next = text, .end = text + length};
}

bool lines_next(struct lines *lines, const char **begin, size_t *count)
{
    const char *newline;

    if (lines->next == lines->end)
        return false;
    lines->line++;
    newline = memchr(lines->next, '\n', (size_t)(lines->end - lines->next));
    *begin = lines->next;
    *count = (size_t)((newline ? newline : lines->end) - lines->next);
    lines->next = newline ? newline + 1 : lines->end;
    if (*count && (*begin)[*count - 1] == '\r')
        --*count;
    return true;
}

int lines_copy(const struct lines *lines, const char *begin, size_t count, char **copy, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        unsigned char byte = (unsigned char)begin[i];
        if ((byte < 0x20 && byte != '\t') || byte == 0x7f)
            return lines_error(lines, err, "byte 0x%02x at column %zu: this is not a text file", byte, i + 1);
    }
    *copy = xstrndup(begin, count);
    return 0;
}
