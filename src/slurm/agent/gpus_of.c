#include "slurm/agent/gpus_of.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The job's last start on the node. */
static json_t *last_lease(const json_t *leases, const char *node)
{
    json_t *found = NULL, *lease;
    size_t i;

    json_array_foreach (leases, i, lease) {
        const char *there = json_string_value(json_object_get(lease, "node"));
        if (there && strcmp(there, node) == 0 &&
            (!found || json_integer_value(json_object_get(lease, "restart")) >=
                           json_integer_value(json_object_get(found, "restart"))))
            found = lease;
    }
    return found;
}

static void print_indexes(const char *name, const json_t *indexes)
{
    json_t *index;
    size_t i;

    printf("export %s=", name);
    json_array_foreach (indexes, i, index)
        printf("%s%" JSON_INTEGER_FORMAT, i ? "," : "", json_integer_value(index));
    printf("\n");
}

int gpus_of_print(const struct agent *agent, int64_t job, struct error *err)
{
    char path[64];
    json_t *reply = NULL, *indexes;
    int rc;

    snprintf(path, sizeof path, "/v1/leases/by-key?job=%" PRId64, job);
    rc = agent_ask(agent, "GET", path, NULL, &reply, err);
    indexes = json_object_get(last_lease(json_object_get(reply, "leases"), agent->node), "indexes");
    if (json_array_size(indexes)) {
        print_indexes("SLURM_JOB_GPUS", indexes);
        print_indexes("CUDA_VISIBLE_DEVICES", indexes);
    }
    json_decref(reply);
    return rc;
}
