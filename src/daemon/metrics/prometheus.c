#include "daemon/metrics/prometheus.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/text/printable.h"

const char *prometheus_type_name(enum prometheus_type type)
{
    static const char *const names[PROMETHEUS_TYPE_COUNT] = {"gauge", "counter", "histogram"};

    return names[type];
}

/* In HELP quotes stand for themselves, but in OpenMetrics. */
static void put_escaped(struct strbuf *out, const char *text, bool quoted)
{
    for (size_t length; *text; text += length) {
        int32_t c = printable_decode(text, &length);

        if (c == '\\')
            strbuf_puts(out, "\\\\");
        else if (c == '\n')
            strbuf_puts(out, "\\n");
        else if (c == '"' && quoted)
            strbuf_puts(out, "\\\"");
        else if (printable_deceives(c))
            strbuf_puts(out, "?");
        else
            strbuf_append(out, text, length);
    }
}

static bool ends_with(const char *name, size_t length, const char *end)
{
    return length > strlen(end) && strncmp(name + length - strlen(end), end, strlen(end)) == 0;
}

/* OpenMetrics names a counter without _total, and says the unit that the name ends with. */
void prometheus_begin(struct strbuf *out, const char *name, enum prometheus_type type, const char *help, bool open)
{
    static const char *const units[] = {"_bytes", "_seconds", "_joules", "_watts", "_ratio", "_bytes_per_second"};
    size_t length = strlen(name);

    if (open && ends_with(name, length, "_total"))
        length -= strlen("_total");
    strbuf_printf(out, "# HELP %.*s ", (int)length, name);
    put_escaped(out, help, open);
    strbuf_printf(out, "\n# TYPE %.*s %s\n", (int)length, name, prometheus_type_name(type));
    for (size_t i = 0; open && i < array_size(units); i++)
        if (ends_with(name, length, units[i]))
            strbuf_printf(out, "# UNIT %.*s %s\n", (int)length, name, units[i] + 1);
}

static void put_labels(struct strbuf *out, const struct prometheus_label *labels)
{
    bool some = false;

    for (; labels && labels->name; labels++) {
        if (!labels->value || !*labels->value)
            continue;
        strbuf_printf(out, "%s%s=\"", some ? "," : "{", labels->name);
        put_escaped(out, labels->value, true);
        strbuf_puts(out, "\"");
        some = true;
    }
    if (some)
        strbuf_puts(out, "}");
}

static void put_value(struct strbuf *out, int64_t value, enum prometheus_unit unit)
{
    uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value, scale = 1;

    for (int i = 0; i < (int)unit; i++)
        scale *= 10;
    strbuf_printf(out, "%s%" PRIu64, value < 0 ? "-" : "", size / scale);
    if (unit != PROMETHEUS_WHOLE)
        strbuf_printf(out, ".%0*" PRIu64, (int)unit, size % scale);
}

void prometheus_sample(struct strbuf *out, const char *name, const struct prometheus_label *labels, int64_t value,
                       enum prometheus_unit unit)
{
    strbuf_puts(out, name);
    put_labels(out, labels);
    strbuf_puts(out, " ");
    put_value(out, value, unit);
    strbuf_puts(out, "\n");
}

void prometheus_histogram(struct strbuf *out, const char *name, const int64_t *bounds_s, const int64_t *no_more,
                          size_t bound_count, int64_t count, int64_t sum_ns, bool open)
{
    for (size_t i = 0; i < bound_count; i++) /* OpenMetrics compares bounds as texts: all are fractions there */
        strbuf_printf(out, "%s_bucket{le=\"%" PRId64 "%s\"} %" PRId64 "\n", name, bounds_s[i], open ? ".0" : "",
                      no_more[i]);
    strbuf_printf(out, "%s_bucket{le=\"+Inf\"} %" PRId64 "\n%s_sum ", name, count, name);
    put_value(out, sum_ns, PROMETHEUS_NANO);
    strbuf_printf(out, "\n%s_count %" PRId64 "\n", name, count);
}

void prometheus_end(struct strbuf *out, bool open)
{
    strbuf_puts(out, open ? "# EOF\n" : "");
}
