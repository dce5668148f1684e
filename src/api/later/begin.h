/* The time before which a job is not to begin, or is to have ended, in sbatch's words: "now+2hours", "now+90"
 * (seconds), "22:00", "midnight", "noon", "tomorrow", "2026-12-01", "2026-12-01T08:00". */
#ifndef CARMA_API_BEGIN_H
#define CARMA_API_BEGIN_H

#include <stdint.h>

#include "base/error.h"

/* As nanoseconds since the Unix epoch, with this machine's time zone; a time of day is the next one. -EINVAL. */
int begin_parse(const char *text, int64_t now_ns, int64_t *begin_ns, struct error *err);

/* Rows' checks (job_fields.def): a deadline has the same words. */
int begin_check(const char *text, struct error *err);
int deadline_check(const char *text, struct error *err);

#endif
