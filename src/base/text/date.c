#include "base/text/date.h"

#include <string.h>

#include "base/units.h"

int64_t date_ns(const struct tm *local)
{
    struct tm copy = *local;

    copy.tm_isdst = -1;
    return (int64_t)mktime(&copy) * NS_PER_SEC;
}

/* strptime takes 2026-02-31 and mktime makes March of it. */
static bool is_day(const struct tm *parsed)
{
    struct tm copy = *parsed;

    copy.tm_isdst = -1;
    return mktime(&copy) != -1 && copy.tm_mday == parsed->tm_mday && copy.tm_mon == parsed->tm_mon;
}

enum date_read date_parse(const char *text, const char *format, struct tm *parsed)
{
    const char *end;

    *parsed = (struct tm){.tm_mday = 1};
    if (strspn(text, "0123456789") != 4) /* strptime would take a year of one digit, and blanks */
        return DATE_OTHER;
    end = strptime(text, format, parsed);
    if (!end || *end)
        return DATE_OTHER;
    return is_day(parsed) && parsed->tm_year >= 70 && parsed->tm_year <= 300 ? DATE_READ : DATE_NONE;
}
