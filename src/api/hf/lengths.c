#include "api/hf/lengths.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api/lines.h"
#include "base/memory.h"
#include "base/units.h"

#define TOKENS_MOST  INT64_C(1000000000)
#define SAMPLES_MOST INT64_C(1000000000) /* of a line: of all lines together they hold in 63 bits */
#define BLANKS       " \t"

/* 0: of a blank line nothing is taken; `through` is how many samples have the length. */
static int take_line(const struct lines *lines, char *line, struct sample_length *sample, struct error *err)
{
    CLEANUP(free_ptr) char *words = xstrdup(line);
    char *rest = NULL, *tokens = strtok_r(words, BLANKS, &rest), *samples = strtok_r(NULL, BLANKS, &rest);

    *sample = (struct sample_length){.through = tokens != NULL};
    if (!tokens || (parse_integer(tokens, 1, TOKENS_MOST, &sample->tokens, NULL) == 0 &&
                    (!samples || parse_integer(samples, 1, SAMPLES_MOST, &sample->through, NULL) == 0) &&
                    !strtok_r(NULL, BLANKS, &rest)))
        return 0;
    return lines_error(lines, err,
                       "'%.40s' is no length: write the tokens of one sample, from 1 to %" PRId64
                       ", or these and how many samples have as many",
                       line, TOKENS_MOST);
}

static int by_tokens(const void *a, const void *b)
{
    const struct sample_length *left = a, *right = b;

    return (left->tokens > right->tokens) - (left->tokens < right->tokens);
}

/* Each length once, and the samples counted through. */
static void sort(struct lengths *lengths)
{
    size_t kept = 0;

    qsort(lengths->items, lengths->count, sizeof *lengths->items, by_tokens);
    for (size_t i = 1; i < lengths->count; i++) {
        struct sample_length next = lengths->items[i];
        next.through += lengths->items[kept].through;
        kept += next.tokens != lengths->items[kept].tokens;
        lengths->items[kept] = next;
    }
    lengths->count = kept + 1;
}

int hf_lengths_read(struct lengths *lengths, const char *name, const char *text, struct error *err)
{
    struct lines lines = lines_of(name, text, strlen(text));
    size_t capacity = 0, length;
    const char *begin;
    int rc = 0;

    *lengths = (struct lengths){0};
    while (rc == 0 && lines_next(&lines, &begin, &length)) {
        CLEANUP(free_ptr) char *line = NULL;
        struct sample_length sample;
        rc = lines_copy(&lines, begin, length, &line, err);
        if (rc || (rc = take_line(&lines, line, &sample, err)) || !sample.through)
            continue;
        array_reserve(lengths->items, capacity, lengths->count + 1);
        lengths->items[lengths->count++] = sample;
    }
    if (rc == 0 && lengths->count == 0)
        rc = error_set(err, EINVAL, "%s: no length is in it: write the tokens of a sample into each line", name);
    if (rc)
        lengths_release(lengths);
    else
        sort(lengths);
    return rc;
}
