/* Prometheus's text format, version 0.0.4, and OpenMetrics 1.0, which differs from it in a few places
 * (docs/formats/prometheus.md): how a metric and its samples are written. Pure. */
#ifndef CARMA_DAEMON_METRICS_PROMETHEUS_H
#define CARMA_DAEMON_METRICS_PROMETHEUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

#define PROMETHEUS_MEDIA_TYPE "text/plain; version=0.0.4; charset=utf-8"

#define OPENMETRICS_TYPE "application/openmetrics-text"

enum prometheus_type { PROMETHEUS_GAUGE, PROMETHEUS_COUNTER, PROMETHEUS_HISTOGRAM, PROMETHEUS_TYPE_COUNT };

const char *prometheus_type_name(enum prometheus_type type);

/* The unit of an integer: 10^-decimals of the metric's unit, so that nothing is rounded. */
enum prometheus_unit {
    PROMETHEUS_WHOLE = 0, /* bytes, things */
    PROMETHEUS_MILLI = 3, /* permille of a ratio, millijoules, milliwatts */
    PROMETHEUS_NANO = 9   /* nanoseconds of seconds */
};

/* The value may be any bytes: characters that a label cannot hold are escaped, and those that must not be shown
 * (base/text/printable.h) are '?'. NULL and "", which mean the same to Prometheus, are left out. */
struct prometheus_label {
    const char *name;
    const char *value;
};

/* The lines before a metric's samples. `open`: as OpenMetrics, here and below. */
void prometheus_begin(struct strbuf *out, const char *name, enum prometheus_type type, const char *help, bool open);

/* A sample of `name` (of a histogram: with its suffix). `labels` ends with a NULL name, and may be NULL. */
void prometheus_sample(struct strbuf *out, const char *name, const struct prometheus_label *labels, int64_t value,
                       enum prometheus_unit unit);

/* A histogram without labels: how many values there were in all, their sum, and how many were at most each rising bound
 * (in seconds). */
void prometheus_histogram(struct strbuf *out, const char *name, const int64_t *bounds_s, const int64_t *no_more,
                          size_t bound_count, int64_t count, int64_t sum_ns, bool open);

/* Behind the last metric. */
void prometheus_end(struct strbuf *out, bool open);

#endif
