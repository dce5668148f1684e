/* The thesis's metrics (6.3.4) of a played trace: computed, as JSON (docs/formats/cli.md), and as a table. */
#ifndef CARMA_CLI_PLAY_REPORT_H
#define CARMA_CLI_PLAY_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "cli/play/usage.h"

/* The metrics of `jobs` (the daemon's job objects, ended), as an object; the caller adds the trace and the node.
 *   makespan    last end - first submission
 *   wait time   first start - submission; run time: end - last launch; JCT: end - submission
 *   oom         launches that ran out of GPU memory
 *
 * Jobs that were never started count as failed, and in no time. Percentiles interpolate between the closest ranks. */
struct report_job {
    const json_t *job; /* borrowed */
    double alone_s;    /* how long it runs alone on its GPUs */
};

json_t *report_compute(const struct report_job *jobs, size_t count, const struct usage *usage);

/* Whether some job did not complete: the report is not to be compared with others. */
bool report_is_incomplete(const json_t *report);

/* Reads a report that `carma play --json` has written. One line that names the file and its fault. */
int report_read(const char *path, json_t **report, struct error *err);

/* One column of figures per report, and the change in percent against the first beside every other. */
void report_format(json_t *const *reports, size_t count, int width, bool colour, struct strbuf *out);

#endif
