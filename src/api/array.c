#include "api/array.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"

static uint32_t jobs_of(const struct array_range *range)
{
    return (range->last - range->first) / range->step + 1;
}

static int parse_number(const char *text, int64_t least, int64_t *number)
{
    return parse_integer(text, least, ARRAY_MAX_INDEX, number, NULL);
}

/* "7", "0-99", "0-99:5". */
static int parse_range(char *part, struct array_words *words, struct error *err)
{
    CLEANUP(free_ptr) char *said = xstrdup(part);
    char *colon = strchr(part, ':'), *dash;
    int64_t first, last, step = 1;
    struct array_range *range = &words->ranges[words->range_count];

    if (words->range_count == ARRAY_MAX_RANGES)
        return error_set(err, EINVAL, "array: more than %d ranges: an array may have that many", ARRAY_MAX_RANGES);
    if (colon)
        *colon++ = '\0';
    dash = strchr(part, '-');
    if (dash)
        *dash++ = '\0';
    if (parse_number(part, 0, &first) || (dash && parse_number(dash, 0, &last)) ||
        (colon && (!dash || parse_number(colon, 1, &step))))
        return error_set(err, EINVAL, "array: '%.40s' is no range of indices from 0 to %d: 0-99, 1,3,5 or 0-90:10",
                         said, ARRAY_MAX_INDEX);
    if (!dash)
        last = first;
    if (last < first)
        return error_set(err, EINVAL, "array: '%.40s' runs backwards: write the smaller index first", said);
    *range = (struct array_range){
        .first = (uint32_t)first, .last = (uint32_t)(last - (last - first) % step), .step = (uint32_t)step};
    if (words->range_count && first <= range[-1].last)
        return error_set(err, EINVAL, "array: '%.40s' follows index %" PRIu32 ": write rising indices, each once", said,
                         range[-1].last);
    if (jobs_of(range) > ARRAY_MAX_JOBS - words->jobs)
        return error_set(err, EINVAL, "array: '%.40s' makes it more than %d jobs: submit it in parts", said,
                         ARRAY_MAX_JOBS);
    words->jobs += jobs_of(range);
    words->range_count++;
    return 0;
}

int array_parse(const char *text, struct array_words *words, struct error *err)
{
    CLEANUP(free_ptr) char *copy = xstrdup(text);
    char *rest = copy, *percent = strchr(copy, '%'), *part;
    int64_t most;
    int rc = 0;

    words->range_count = words->jobs = words->most = 0;
    if (percent) {
        *percent++ = '\0';
        if (parse_number(percent, 1, &most))
            return error_set(err, EINVAL, "array: '%%%.40s' says not how many run at a time: 0-99%%8, for example",
                             percent);
        words->most = (uint32_t)most;
    }
    while (rc == 0 && (part = strsep(&rest, ",")))
        rc = parse_range(part, words, err);
    return rc;
}

int array_check(const char *text, struct error *err)
{
    struct array_words ignored;

    return array_parse(text, &ignored, err);
}

uint32_t array_index(const struct array_words *words, uint32_t position)
{
    const struct array_range *range = words->ranges;

    for (; position >= jobs_of(range); range++)
        position -= jobs_of(range);
    return range->first + position * range->step;
}

int64_t array_position(const struct array_words *words, uint32_t index)
{
    uint32_t before = 0;

    for (uint32_t i = 0; i < words->range_count; before += jobs_of(&words->ranges[i++])) {
        const struct array_range *range = &words->ranges[i];
        if (index >= range->first && index <= range->last && (index - range->first) % range->step == 0)
            return before + (index - range->first) / range->step;
    }
    return -1;
}

uint32_t array_last(const struct array_words *words)
{
    return words->ranges[words->range_count - 1].last;
}
