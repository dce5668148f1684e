/* Requests to carma-sandbox, as JSON (docs/automatic-capture.md): run a job's command, to record a training step. */
#ifndef CARMA_API_CAPTURE_REQUEST_H
#define CARMA_API_CAPTURE_REQUEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "api/spec_limits.h"
#include "base/error.h"

struct job_spec;

#define CAPTURE_TIME_S         120
#define CAPTURE_MEMORY_BYTES   (INT64_C(8) << 30)
#define CAPTURE_CORES          1
#define CAPTURE_OUTPUT_BYTES   (SPEC_MAX_CAPTURE + (1 << 20)) /* with the lines of JSON */
#define CAPTURE_COPY_OF_SCRIPT "/tmp/carma-capture-"          /* and the job's number: the folder with its script */

/* The user and the place of the run. All texts are borrowed. */
struct capture_request {
    uid_t uid;
    gid_t gid;
    const char *user; /* the name of the account; NULL: not known */
    const char *directory;
    const char *cgroup; /* where a control group may be made; NULL: nowhere */
    bool bare;          /* without a sandbox */
};

/* The spec's own command, in its environment, with carma_auto before all other modules. `job` tells copies of scripts
 * apart. The text is the caller's to free. -EINVAL: it cannot be run so, and err says why. */
int capture_request_make(const struct capture_request *request, uint64_t job, const struct job_spec *spec, char **text,
                         struct error *err);

/* The request for any command. `result_bytes` limits the result. Both lists of texts are taken over; the returned text
 * is the caller's. */
char *capture_request_text(const struct capture_request *request, json_t *environment, json_t *command, int time_s,
                           size_t result_bytes);

#endif
