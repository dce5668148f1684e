/* The requests of whoever has the node's queue, Slurm, for leases (docs/formats/http.md): as data, free of transport.
 */
#ifndef CARMA_API_LEASE_H
#define CARMA_API_LEASE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "api/spec.h"
#include "base/error.h"

#define LEASE_REQUEST_MAX_BYTES (2 << 20) /* of a body: a script, and space for its escapes */
#define LEASE_WAIT_MAX_MS       600000
#define LEASE_PIDS_MAX          1024 /* of one request */

/* A request for a lease. The rest of its key, cluster, job, restart and node, is in the spec. */
struct lease_request {
    struct job_spec spec; /* owned */
    uint32_t uid;
    int64_t gid; /* -1: the user database says */
    int64_t wait_ms;
};

/* -EINVAL with one line. *request is to be released in any case. */
int lease_request_parse(const char *text, size_t length, struct lease_request *request, struct error *err);
void lease_request_release(struct lease_request *request);

struct lease_attach {
    char *cgroup; /* owned; NULL: none */
    pid_t pids[LEASE_PIDS_MAX];
    size_t count;
    pid_t teller; /* the parent of them all, which will tell their end; 0: not said */
};

int lease_attach_parse(const char *text, size_t length, struct lease_attach *attach, struct error *err);
void lease_attach_release(struct lease_attach *attach);

/* A step's name: a number, "batch", "interactive" or "extern". */
bool lease_step_is_name(const char *name);

struct lease_end {
    int32_t exit_status; /* -1: ended by `signal` */
    int32_t signal;
    bool stopped;
    char *output; /* owned; NULL: not said */
};

int lease_end_parse(const char *text, size_t length, size_t most_output, struct lease_end *end, struct error *err);
void lease_end_release(struct lease_end *end);

#endif
