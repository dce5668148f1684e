/* The limits of a job's description. */
#ifndef CARMA_API_SPEC_LIMITS_H
#define CARMA_API_SPEC_LIMITS_H

#include <stdint.h>

#define SPEC_MAX_CPUS        4096
#define SPEC_MAX_NAME        128
#define SPEC_MAX_LINE        1024 /* bytes of other texts */
#define SPEC_MAX_BATCH_SIZE  (INT64_C(1) << 40)
#define SPEC_MAX_ARGUMENTS   4096
#define SPEC_MAX_ENVIRONMENT 8192
#define SPEC_MAX_TEXT        (1 << 20)                        /* bytes of command, of environment, each in all */
#define SPEC_MAX_SCRIPT      (1 << 20)                        /* bytes */
#define SPEC_MAX_SUMMARY     (8 << 20)                        /* bytes */
#define SPEC_MAX_LENGTHS     (1 << 20)                        /* bytes */
#define SPEC_MAX_CAPTURE     (8 << 20)                        /* bytes */
#define SPEC_MAX_PACKED      (8 << 20)                        /* bytes of all its texts together */
#define SPEC_MAX_SLOWDOWN    1000000                          /* permille */
#define SPEC_MAX_TIME_NS     (3650 * INT64_C(86400000000000)) /* ten years */
#define IDLE_LIMIT_LEAST     INT64_C(60000000000)             /* a minute: activity is measured over seconds */
#define SPEC_MAX_GPU_MEMORY  (INT64_C(1) << 50)
#define SPEC_MAX_JOBS        1000       /* of one request */
#define SPEC_MAX_REQUEST     (16 << 20) /* bytes of its JSON: one job with its texts at their limits, in escapes */

/* Of a job's JSON: its lists at their limits, what is stored beside them, and texts in which every second byte is an
 * escape (base/json/json_read.h). */
#define SPEC_JSON_BOUNDS                                                                                               \
    {                                                                                                                  \
        .values = 16 << 10, .depth = 8, .bytes = 2 * SPEC_MAX_PACKED                                                   \
    }

#endif
