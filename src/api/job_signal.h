/* Time limits, and the signal that comes before one, as people write them: Slurm's --time and --signal. */
#ifndef CARMA_API_JOB_SIGNAL_H
#define CARMA_API_JOB_SIGNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define JOB_SIGNAL_MAX  64 /* Linux has signals 1 to 64 */
#define JOB_SIGNAL_TEXT 16

/* "90" (minutes), "12:00:00", "2-12", "90s": more than nothing, at most ten years; in nanoseconds of node time. -EINVAL
 * with one line. */
int job_time_parse(const char *text, int64_t *limit_ns, struct error *err);

/* "USR1@120", "SIGTERM@2m", "10": a name or number, and the time before the time limit. The time is in seconds unless
 * it has a unit. Where it is not said it is 60 seconds. -EINVAL with one line. */
int job_signal_parse(const char *text, uint32_t *signal, int64_t *before_ns, struct error *err);

/* A signal that people send to jobs, by its name or number. -EINVAL with one line, which names the command for those
 * that end, stop or continue every process. */
int job_signal_to_send(const char *text, uint32_t *signal, struct error *err);

bool job_signal_can_be_caught(uint32_t signal); /* it exists, and is neither KILL nor STOP */

/* "USR1"; the number where it has no name; returns text. */
const char *job_signal_name(uint32_t signal, char text[static JOB_SIGNAL_TEXT]);

#endif
