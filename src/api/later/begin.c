#include "api/later/begin.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/text/date.h"
#include "base/units.h"

#define SECONDS_MOST INT64_C(3153600000) /* a hundred years */

/* Seconds that a unit has; 0: there is none such. */
static int64_t unit_of(const char *word)
{
    static const struct {
        const char *letter, *name;
        int64_t seconds;
    } units[] = {
        {"s", "second", 1}, {"m", "minute", 60}, {"h", "hour", 3600}, {"d", "day", 86400}, {"w", "week", 7 * 86400}};

    if (!*word)
        return 1;
    for (size_t i = 0; i < array_size(units); i++) {
        size_t length = strlen(units[i].name);
        if (strcmp(word, units[i].letter) == 0 ||
            (strncmp(word, units[i].name, length) == 0 && (!word[length] || strcmp(word + length, "s") == 0)))
            return units[i].seconds;
    }
    return 0;
}

/* Behind "now+". */
static bool parse_later(const char *text, int64_t now_ns, int64_t *begin_ns)
{
    size_t digits = strspn(text, "0123456789");
    CLEANUP(free_ptr) char *number = xasprintf("%.*s", (int)digits, text);
    int64_t count, unit = unit_of(text + digits);

    if (!unit || parse_integer(number, 0, SECONDS_MOST / unit, &count, NULL) != 0)
        return false;
    *begin_ns = now_ns + count * unit * NS_PER_SEC;
    return true;
}

/* The next time at which it is so late. */
static bool parse_time_of_day(const char *text, int64_t now_ns, int64_t *begin_ns)
{
    static const char *const formats[] = {"%H:%M:%S", "%H:%M"};
    time_t now = now_ns / NS_PER_SEC;
    struct tm day, at;

    for (size_t i = 0; i < array_size(formats); i++) {
        const char *end;
        localtime_r(&now, &day);
        at = day;
        at.tm_sec = 0;
        end = strptime(text, formats[i], &at);
        if (!end || *end)
            continue;
        *begin_ns = date_ns(&at);
        if (*begin_ns <= now_ns) {
            day.tm_mday++;
            day.tm_hour = at.tm_hour;
            day.tm_min = at.tm_min;
            day.tm_sec = at.tm_sec;
            *begin_ns = date_ns(&day);
        }
        return true;
    }
    return false;
}

static bool parse_date(const char *text, int64_t *begin_ns)
{
    static const char *const formats[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"};

    for (size_t i = 0; i < array_size(formats); i++) {
        struct tm parsed;
        enum date_read read = date_parse(text, formats[i], &parsed);
        if (read == DATE_OTHER)
            continue;
        *begin_ns = date_ns(&parsed);
        return read == DATE_READ && parsed.tm_year < 300;
    }
    return false;
}

static int parse(const char *what, const char *text, int64_t now_ns, int64_t *time_ns, struct error *err)
{
    static const struct {
        const char *word, *means;
    } words[] = {{"now", "now+0"}, {"midnight", "00:00"}, {"noon", "12:00"}, {"tomorrow", "now+1day"}};

    for (size_t i = 0; i < array_size(words); i++)
        if (strcmp(text, words[i].word) == 0)
            text = words[i].means;
    if (strncmp(text, "now+", 4) == 0 ? parse_later(text + 4, now_ns, time_ns)
                                      : parse_time_of_day(text, now_ns, time_ns) || parse_date(text, time_ns))
        return 0;
    return error_set(err, EINVAL, "%s '%.40s' is not a time: now+2hours, 22:00, 2026-12-01 or 2026-12-01T08:00", what,
                     text);
}

int begin_parse(const char *text, int64_t now_ns, int64_t *begin_ns, struct error *err)
{
    return parse("begin", text, now_ns, begin_ns, err);
}

int begin_check(const char *text, struct error *err)
{
    int64_t ignored;

    return parse("begin", text, 0, &ignored, err);
}

int deadline_check(const char *text, struct error *err)
{
    int64_t ignored;

    return parse("deadline", text, 0, &ignored, err);
}
