/* Of what its user wants to be told about a job: "start,end,fail,oom,idle,timeout=30m". carma-notify tells it
 * (src/notify).
 */
#ifndef CARMA_API_TOLD_NOTIFY_H
#define CARMA_API_TOLD_NOTIFY_H

#include <stdint.h>

#include "base/error.h"

enum notify_event {
    NOTIFY_START,   /* it runs for the first time */
    NOTIFY_END,     /* it has ended, however */
    NOTIFY_FAIL,    /* it has ended, neither completed nor cancelled */
    NOTIFY_OOM,     /* a run of it ended out of GPU memory; it may be retried */
    NOTIFY_TIMEOUT, /* so long before its time limit */
    NOTIFY_IDLE,    /* it does not use its GPUs, and is warned of its idle limit */
    NOTIFY_EVENTS
};

struct notify_words {
    uint32_t events;   /* 1 << enum notify_event */
    int64_t before_ns; /* of NOTIFY_TIMEOUT */
};

extern const char *const notify_event_names[NOTIFY_EVENTS];

int notify_parse(const char *text, struct notify_words *words, struct error *err); /* -EINVAL */

/* A row's check (job_fields.def). */
int notify_check(const char *text, struct error *err);

#endif
