/* Points in time as people say them, for --since and --until. */
#ifndef CARMA_CLI_HISTORY_SPAN_H
#define CARMA_CLI_HISTORY_SPAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Node time of
 *   "2d", "90m", "1.5h", "2w"             this long ago
 *   "now", "today", "yesterday"           their beginning (now: itself)
 *   "2026-11-01", "2026-11"               of local time; the beginning of the day, the month
 *   "2026-11-01T12:00", "...T12:00:30"    (a blank instead of the T, too)
 *   "@1793700000", "@12.5"                seconds of node time: since 1970; on a virtual node, since boot
 *
 * With `ends`, a day or a month is its end instead: the beginning of the next. A node with a clock of its own
 * (`scaled`) has no days and months. -EINVAL names the valid forms. */
int span_parse(const char *text, bool ends, int64_t now_ns, bool scaled, int64_t *ns, struct error *err);

#endif
