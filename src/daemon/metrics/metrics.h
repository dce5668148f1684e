/* The node for monitoring systems: GET /metrics (docs/formats/prometheus.md). One table (metrics.c) lists all metrics;
 * a test compares the documentation with it. */
#ifndef CARMA_DAEMON_METRICS_METRICS_H
#define CARMA_DAEMON_METRICS_METRICS_H

#include "base/strbuf.h"
#include "daemon/daemon.h"

/* In Prometheus's text format or, with `open`, as OpenMetrics; owned by the caller. It shows no more than any user may
 * see in the queue. */
char *metrics_text(const struct daemon *daemon, bool open);

/* The table of docs/formats/prometheus.md: a line for each metric. */
void metrics_describe(struct strbuf *out);

#endif
