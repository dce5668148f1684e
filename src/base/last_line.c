#include "base/last_line.h"

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
            line->text[line->length++] = (unsigned char)c < ' ' || c == 0x7f ? '?' : c;
        line->text[line->length] = '\0';
    }
}
