#include "cli/history/span.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/text/date.h"
#include "base/units.h"

#define SECONDS_MOST 9000000000.0 /* of node time: nanoseconds fit 63 bits */

static int no_time(const char *text, bool scaled, struct error *err)
{
    return scaled ? error_set(
                        err, EINVAL,
                        "'%.40s' is not a time on a virtual node: say how long ago (30m, 2d) or @SECONDS of node time",
                        text)
                  : error_set(err, EINVAL,
                              "'%.40s' is not a time: say how long ago (90m, 2d), yesterday, 2026-11-01 or "
                              "2026-11-01T12:00",
                              text);
}

/* Seconds that a unit of an age has; 0: no such unit. */
static double unit_of(const char *unit)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}, {"w", 7 * 86400}};

    for (size_t i = 0; i < array_size(units); i++)
        if (strcmp(units[i].name, unit) == 0)
            return units[i].seconds;
    return 0;
}

/* Digits with at most one point: strtod takes other forms that are not numbers to people. */
static bool number_of(const char *text, double *value, const char **rest)
{
    size_t length = strspn(text, "0123456789.");
    char *end;

    *value = strtod(text, &end);
    *rest = end;
    return length > 0 && end == text + length;
}

/* A day or a month, by its first moment. */
static int64_t edge_of(struct tm *first, bool month, bool ends)
{
    if (ends && month)
        first->tm_mon++;
    else if (ends)
        first->tm_mday++;
    return date_ns(first);
}

static bool parse_word(const char *text, bool ends, int64_t now_ns, int64_t *ns)
{
    bool yesterday = strcmp(text, "yesterday") == 0;
    time_t now = now_ns / NS_PER_SEC;
    struct tm day;

    if (!yesterday && strcmp(text, "today") != 0)
        return false;
    localtime_r(&now, &day);
    day.tm_hour = day.tm_min = day.tm_sec = 0;
    day.tm_mday -= yesterday;
    *ns = edge_of(&day, false, ends);
    return true;
}

static bool parse_date(const char *text, bool ends, int64_t *ns)
{
    static const struct {
        const char *format;
        bool month, day;
    } formats[] = {{"%Y-%m-%dT%H:%M:%S", false, false}, {"%Y-%m-%dT%H:%M", false, false},
                   {"%Y-%m-%d %H:%M:%S", false, false}, {"%Y-%m-%d %H:%M", false, false},
                   {"%Y-%m-%d", false, true},           {"%Y-%m", true, false}};

    for (size_t i = 0; i < array_size(formats); i++) {
        struct tm parsed;
        enum date_read read = date_parse(text, formats[i].format, &parsed);

        if (read == DATE_OTHER)
            continue;
        if (read == DATE_READ)
            *ns = formats[i].month || formats[i].day ? edge_of(&parsed, formats[i].month, ends) : date_ns(&parsed);
        return read == DATE_READ;
    }
    return false;
}

int span_parse(const char *text, bool ends, int64_t now_ns, bool scaled, int64_t *ns, struct error *err)
{
    double value;
    const char *rest;

    *ns = now_ns;
    if (strcmp(text, "now") == 0)
        return 0;
    if (*text == '@' && number_of(text + 1, &value, &rest) && !*rest && value < SECONDS_MOST) {
        *ns = (int64_t)(value * 1e9);
        return 0;
    }
    if (number_of(text, &value, &rest) && unit_of(rest) > 0) {
        value *= unit_of(rest);
        *ns = value < (double)now_ns / 1e9 ? now_ns - (int64_t)(value * 1e9) : 0;
        return 0;
    }
    if (!scaled && (parse_word(text, ends, now_ns, ns) || parse_date(text, ends, ns)))
        return 0;
    return no_time(text, scaled, err);
}
