#include "launch/progress.h"

#include <string.h>

#include "base/memory.h"

#define LINE_MOST   1024 /* bytes; a longer line without an end is not waited for */
#define DIGITS_MOST 12

/* A bar that has not moved in as many readings has been left, full or not. */
#define LEFT_AFTER 60

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A whole number at *at, which is moved behind it. */
static bool take_number(const char **at, const char *end, int64_t *value)
{
    const char *begin = *at;

    *value = 0;
    while (*at < end && is_digit(**at) && *at - begin < DIGITS_MOST)
        *value = *value * 10 + (*(*at)++ - '0');
    return *at > begin && (*at == end || !is_digit(**at));
}

static bool take_text(const char **at, const char *end, const char *text)
{
    size_t length = strlen(text);

    if ((size_t)(end - *at) < length || memcmp(*at, text, length) != 0)
        return false;
    *at += length;
    return true;
}

/* The number whose digits end before `end`. */
static bool number_before(const char *begin, const char *end, int64_t *value)
{
    const char *at = end;

    while (at > begin && is_digit(at[-1]))
        at--;
    return take_number(&at, end, value) && at == end;
}

/* "37%|###7      | 370/1000 [": the numbers have to agree with the percentage. */
static bool parse_bar(const char *line, const char *end, struct progress_count *count)
{
    const char *mark = memmem(line, (size_t)(end - line), "%|", 2);
    int64_t percent, off;

    if (!mark || !number_before(line, mark, &percent) || percent > 100)
        return false;
    for (const char *at = mark + 1; (at = memchr(at, '|', (size_t)(end - at)));) {
        at++;
        if (take_text(&at, end, " ") && take_number(&at, end, &count->step) && take_text(&at, end, "/") &&
            take_number(&at, end, &count->total) && take_text(&at, end, " [")) {
            off = count->total ? percent * count->total - 100 * count->step : -1;
            return count->step <= count->total && off >= -count->total && off <= count->total;
        }
    }
    return false;
}

/* "370it [00:12, 29.9it/s]": nobody knows how many there will be. One at 0 stands where another bar is to come. */
static bool parse_endless(const char *line, const char *end, struct progress_count *count)
{
    const char *mark = memmem(line, (size_t)(end - line), "it [", 4);

    count->total = 0;
    return mark && end - mark > 4 && is_digit(mark[4]) && number_before(line, mark, &count->step) && count->step > 0;
}

/* A new pass begins below half of the last step that was read. Several processes that print the same bar are not quite
 * at one step. Its rest is taken as done: a full bar is often not printed. */
static void advance(struct progress *progress, struct progress_bar *bar, const struct progress_count *to)
{
    struct progress_count *count = &bar->count;

    if (!bar->moved || count->total != to->total) {
        *count = *to;
        count->done = to->step;
    } else if (to->step > count->step) {
        count->done += to->step - count->step;
        count->step = to->step;
    } else if (to->step < count->step / 2) {
        count->done += (count->total ? count->total - count->step : 0) + to->step;
        count->step = to->step;
    } else {
        return;
    }
    if (count->done > PROGRESS_DONE_MOST)
        count->done = count->step;
    bar->moved = progress->reading;
}

/* The bar with this total, or the place of the one that has not moved for longest. */
static struct progress_bar *bar_of(struct progress *progress, int64_t total)
{
    struct progress_bar *oldest = progress->bars;

    for (size_t i = 0; i < PROGRESS_BARS; i++) {
        struct progress_bar *bar = &progress->bars[i];
        if (bar->moved && bar->count.total == total)
            return bar;
        if (bar->moved < oldest->moved)
            oldest = bar;
    }
    return oldest;
}

size_t progress_read_output(struct progress *progress, const char *text, size_t length)
{
    const char *line = text, *end = text + length;

    progress->reading++;
    while (line < end) {
        struct progress_count count = {0};
        const char *over = line;
        while (over < end && *over != '\n' && *over != '\r')
            over++;
        if (parse_bar(line, over, &count) || parse_endless(line, over, &count))
            advance(progress, bar_of(progress, count.total), &count);
        if (over == end && end - line <= LINE_MOST)
            break;
        line = over == end ? end : over + 1;
    }
    return (size_t)(line - text);
}

void progress_read_lines(struct progress *progress, const char *text, size_t length)
{
    const char *line = text, *newline;

    progress->reading++;
    for (; (newline = memchr(line, '\n', (size_t)(text + length - line))); line = newline + 1) {
        struct progress_count count = {0};
        const char *at = line;
        bool good = take_number(&at, newline, &count.step);
        if (good && at < newline)
            good = take_text(&at, newline, "/") && take_number(&at, newline, &count.total) && at == newline &&
                   count.step <= count.total;
        if (good)
            advance(progress, &progress->line, &count);
        progress->told |= good;
    }
}

void progress_forget_bars(struct progress *progress)
{
    memset(progress->bars, 0, sizeof progress->bars);
}

/* How much the bar says of the job: one that moves before one that is full, and both before one that was left. */
static int standing(const struct progress *progress, const struct progress_bar *bar)
{
    if (bar->moved + LEFT_AFTER < progress->reading)
        return 0;
    return bar->count.total && bar->count.step == bar->count.total ? 1 : 2;
}

static bool goes_before(const struct progress *progress, const struct progress_bar *bar,
                        const struct progress_bar *other)
{
    int mine = standing(progress, bar), its = standing(progress, other);

    return mine != its ? mine > its : bar->count.total > other->count.total;
}

const struct progress_count *progress_newest(const struct progress *progress)
{
    const struct progress_bar *best = NULL;

    if (progress->told)
        return &progress->line.count;
    for (size_t i = 0; i < PROGRESS_BARS; i++)
        if (progress->bars[i].moved && (!best || goes_before(progress, &progress->bars[i], best)))
            best = &progress->bars[i];
    return best ? &best->count : NULL;
}
