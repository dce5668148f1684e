#include "base/text/last_line.h"

#include <string.h>

#include "base/text/printable.h"

void last_line_add(struct last_line *line, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char c = bytes[i];

        if (c == '\n') {
            line->ended = true;
            continue;
        }
        if (line->ended)
            line->length = 0;
        line->ended = false;
        if (line->length + 1 < sizeof line->text)
            line->text[line->length++] = c ? c : '?';
        line->text[line->length] = '\0';
    }
}

const char *last_line_text(struct last_line *line)
{
    printable_replace(line->text);
    line->length = strlen(line->text);
    return line->text;
}
