#include "api/directives.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/lines.h"
#include "api/words.h"
#include "base/memory.h"

int directives_parse(const char *marker, const char *file, const char *text, size_t length, struct spec_strings *words,
                     struct error *err)
{
    struct lines lines = lines_of(file, text, length);
    CLEANUP(free_ptr) char *line = NULL;
    const char *begin;
    size_t count;

    while (lines_next(&lines, &begin, &count)) {
        struct error inner;
        size_t blanks = 0;

        while (blanks < count && (begin[blanks] == ' ' || begin[blanks] == '\t'))
            blanks++;
        if (blanks == count)
            continue;
        if (begin[blanks] != '#')
            break;
        /* the marker stands at the very beginning and is a word of its own */
        if (count < strlen(marker) || memcmp(begin, marker, strlen(marker)) != 0 ||
            (count > strlen(marker) && begin[strlen(marker)] != ' ' && begin[strlen(marker)] != '\t'))
            continue;
        free_ptr(&line);
        if (lines_copy(&lines, begin, count, &line, err))
            return -EINVAL;
        if (words_split(line + strlen(marker), words, &inner))
            return lines_error(&lines, err, "%s", inner.text);
    }
    return 0;
}
