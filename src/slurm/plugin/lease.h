/* A lease of this node's carmad (docs/formats/http.md): asked for, joined by tasks, ended. */
#ifndef CARMA_SLURM_PLUGIN_LEASE_H
#define CARMA_SLURM_PLUGIN_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "slurm/plugin/json.h"
#include "slurm/plugin/text.h"

struct lease_request {
    const char *cluster, *node, *name, *directory;
    const char *command; /* for carmad to learn from */
    size_t command_length;
    uint32_t job, restart;
    uid_t uid;
    gid_t gid;
    int64_t gpus;
    int64_t memory_bytes; /* on each GPU; 0: not said */
    bool exclusive;
    const char *share; /* NULL: not said */
};

/* Sends the request, which carmad answers within wait_ms, and does not wait for that: a descriptor for lease_take(), or
 * -1. */
int lease_ask(const char *socket_path, const struct lease_request *request, int64_t wait_ms, int64_t deadline_ms);

/* Asks until `deadline_ms`, also while no carmad listens: it may be starting again. `asked`, lease_ask()'s or -1, is
 * heard first and closed. 0: *answer has the lease's JSON. -EBUSY: not now, -ERANGE: never on this node, and *answer
 * has the reason; another negative errno: carmad did not answer. */
int lease_take(const char *socket_path, const struct lease_request *request, int asked, int64_t deadline_ms,
               struct text *answer);

/* The others ask again, too, while no carmad listens. */

/* Names the process as one of the lease's. `cgroup`: the step's group, NULL for none. 0 or a negative errno. */
int lease_attach(const char *socket_path, int64_t lease, const char *step, pid_t pid, const char *cgroup,
                 int64_t deadline_ms);

/* What became of the job: `status` as of waitpid(2); `stopped`: it was ended from outside. *answer has carmad's
 * verdict. */
int lease_end(const char *socket_path, int64_t lease, int status, bool stopped, const struct text *output,
              int64_t deadline_ms, struct text *answer);

/* The same request's body: one line. */
void lease_write_end(struct text *body, int status, bool stopped, const struct text *output);

/* {"leases": [...]} of a job on this node. */
int lease_list(const char *socket_path, const char *cluster, uint32_t job, int64_t deadline_ms, struct text *answer);

/* The node's GPUs: GET /v1/capacity. */
int lease_capacity(const char *socket_path, int64_t deadline_ms, struct text *answer);

#endif
