#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Digits and an optional decimal point, nothing else: strtod would also take "inf", "nan", "0x1p3" and signs. */
static int parse_decimal(const char *text, double *value, const char **end)
{
    size_t length = strspn(text, "0123456789.");
    char copy[32];

    if (length == 0 || length >= sizeof copy || strspn(text, ".") == length)
        return -EINVAL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    if (strchr(copy, '.') != strrchr(copy, '.'))
        return -EINVAL;
    *value = strtod(copy, NULL);
    *end = text + length;
    return 0;
}

int parse_size(const char *text, int64_t *bytes, struct error *err)
{
    static const struct {
        const char *name;
        int64_t factor;
    } units[] = {{"B", 1},   {"K", KIB},   {"KiB", KIB}, {"KB", KIB}, {"M", MIB},   {"MiB", MIB}, {"MB", MIB},
                 {"G", GIB}, {"GiB", GIB}, {"GB", GIB},  {"T", TIB},  {"TiB", TIB}, {"TB", TIB}};
    const char *rest;
    double value;

    if (parse_decimal(text, &value, &rest) == 0) {
        while (*rest == ' ')
            rest++;
        if (!*rest && value != 0)
            return error_set(err, EINVAL, "'%.20s' has no unit: say %.20sGiB or %.20sMiB", text, text, text);
        if (!*rest) {
            *bytes = 0;
            return 0;
        }
        for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
            if (strcasecmp(rest, units[i].name) != 0)
                continue;
            if (value * (double)units[i].factor > 0x1p62)
                return error_set(err, ERANGE, "size '%.40s' is out of range: at most 4096P", text);
            *bytes = (int64_t)(value * (double)units[i].factor);
            return 0;
        }
    }
    return error_set(err, EINVAL, "'%.40s' is not a size: write it like 12G, 512M or 1.5GiB", text);
}

int parse_ratio(const char *text, int64_t *permille, struct error *err)
{
    const char *rest;
    double value;

    if (parse_decimal(text, &value, &rest) != 0 || *rest)
        return error_set(err, EINVAL, "'%.40s' is not a factor: write it like 1.5", text);
    if (value > 1000 || (value != 0 && value < 1))
        return error_set(err, ERANGE, "%.40s is out of range: 1 to 1000, or 0 for none", text);
    *permille = (int64_t)(value * 1000 + 0.5);
    return 0;
}

int parse_integer(const char *text, int64_t low, int64_t high, int64_t *value, struct error *err)
{
    char *end;
    long long number;

    errno = 0;
    number = strtoll(text, &end, 10);
    if (end == text || *end || isspace((unsigned char)*text) || *text == '+')
        return error_set(err, EINVAL, "'%.40s' is not a whole number", text);
    if (errno || number < low || number > high)
        return error_set(err, ERANGE, "%.40s is out of range: %" PRId64 " to %" PRId64, text, low, high);
    *value = number;
    return 0;
}

/* Fields "a:b:c" of whole numbers; returns how many, or -1. */
static int clock_fields(const char *text, int64_t fields[3])
{
    int count = 0;

    while (count < 3) {
        char *end;
        if (!isdigit((unsigned char)*text))
            return -1;
        errno = 0;
        fields[count++] = strtoll(text, &end, 10);
        if (errno || fields[count - 1] > INT64_C(1000000000))
            return -1;
        if (*end == '\0')
            return count;
        if (*end != ':')
            return -1;
        text = end + 1;
    }
    return -1;
}

static int parse_suffixed(const char *text, int64_t *ns)
{
    static const struct {
        const char *name;
        double factor;
    } units[] = {{"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"min", 60e9}, {"h", 3600e9}, {"d", 86400e9}};
    const char *rest;
    double value;

    if (parse_decimal(text, &value, &rest))
        return -EINVAL;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(rest, units[i].name) == 0 && value * units[i].factor < 0x1p62) {
            *ns = (int64_t)(value * units[i].factor);
            return 0;
        }
    }
    return -EINVAL;
}

int parse_duration(const char *text, int64_t *ns, struct error *err)
{
    const char *dash = strchr(text, '-');
    int64_t days = 0, f[3] = {0, 0, 0}, seconds;
    int count;

    if (parse_suffixed(text, ns) == 0)
        return 0;
    if (dash) {
        char *end;
        errno = 0;
        days = isdigit((unsigned char)*text) ? strtoll(text, &end, 10) : -1;
        if (errno || days < 0 || days > 36500 || end != dash)
            goto bad;
    }
    count = clock_fields(dash ? dash + 1 : text, f);
    if (count < 0)
        goto bad;
    if (dash) /* D-HH[:MM[:SS]] */
        seconds = f[0] * 3600 + f[1] * 60 + f[2];
    else if (count == 3)
        seconds = f[0] * 3600 + f[1] * 60 + f[2];
    else /* MM[:SS] */
        seconds = f[0] * 60 + f[1];
    seconds += days * 86400;
    if (seconds > INT64_C(4000000000))
        goto bad;
    *ns = seconds * NS_PER_SEC;
    return 0;
bad:
    return error_set(err, EINVAL, "'%.40s' is not a time: write it like 30 (minutes), 1:30:00, 2-12 or 90s", text);
}

char *format_bytes(int64_t bytes, char text[static UNITS_TEXT])
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;

    while (unit + 1 < sizeof names / sizeof *names && (value >= 1023.95 || value <= -1023.95)) {
        value /= 1024;
        unit++;
    }
    snprintf(text, UNITS_TEXT, unit >= 3 ? "%.1f %s" : "%.0f %s", value, names[unit]);
    return text;
}

char *format_duration(int64_t ns, char text[static UNITS_TEXT])
{
    int64_t total = ns < 0 ? 0 : ns / NS_PER_SEC;
    int64_t days = total / 86400, hours = total / 3600 % 24, minutes = total / 60 % 60, seconds = total % 60;

    if (days)
        snprintf(text, UNITS_TEXT, "%" PRId64 "-%02d:%02d:%02d", days, (int)hours, (int)minutes, (int)seconds);
    else if (hours)
        snprintf(text, UNITS_TEXT, "%d:%02d:%02d", (int)hours, (int)minutes, (int)seconds);
    else
        snprintf(text, UNITS_TEXT, "%d:%02d", (int)minutes, (int)seconds);
    return text;
}
