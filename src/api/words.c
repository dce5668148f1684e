#include "api/words.h"

#include <errno.h>
#include <string.h>

#include "api/spec_limits.h"
#include "base/memory.h"
#include "base/strbuf.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Appends the content of the quote that *next points at, and goes past its end. */
static int take_quoted(const char **next, struct strbuf *word, struct error *err)
{
    char quote = *(*next)++;

    for (; **next != quote; ++*next) {
        /* inside "..." a backslash quotes only these */
        if (quote == '"' && **next == '\\' && (*next)[1] && strchr("\"\\$`", (*next)[1]))
            ++*next;
        if (!**next)
            return error_set(err, EINVAL, "a quote (%c) is not closed", quote);
        strbuf_append(word, *next, 1);
    }
    ++*next;
    return 0;
}

static int take_word(const char **next, struct strbuf *word, struct error *err)
{
    while (**next && !is_blank(**next)) {
        int rc = 0;

        if (**next == '\'' || **next == '"') {
            rc = take_quoted(next, word, err);
        } else if (**next == '\\' && !(*next)[1]) {
            rc = error_set(err, EINVAL, "a backslash ends the line: lines are not continued here");
        } else {
            *next += **next == '\\';
            strbuf_append(word, (*next)++, 1);
        }
        if (rc)
            return rc;
    }
    return 0;
}

int words_split(const char *line, struct spec_strings *words, struct error *err)
{
    CLEANUP(strbuf_release) struct strbuf word = {0};

    for (;;) {
        int rc;

        line += strspn(line, " \t");
        if (!*line || *line == '#')
            return 0;
        if (words->count == SPEC_MAX_ARGUMENTS)
            return error_set(err, EINVAL, "more than %d words: shorten it", SPEC_MAX_ARGUMENTS);
        strbuf_clear(&word);
        rc = take_word(&line, &word, err);
        if (rc)
            return rc;
        spec_strings_add(words, word.text ? word.text : "");
    }
}
