#include "cli/top/cluster.h"

#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "cli/cluster/slurm.h"
#include "cli/show/answer.h"

#define NODE_GPUS 256
#define NODE_JOBS 1000
#define NODE_IDS                                                                                                       \
    ((json_int_t)1 << 32) /* numbers of jobs are a node's own: on the screen's side they are made unique               \
                           */

static void shift(json_t *job, const char *member, int64_t ns)
{
    int64_t at_ns = answer_integer(job, member, 0);

    if (at_ns > 0)
        json_object_set_new(job, member, json_integer(at_ns + ns));
}

static bool is_one_of(const char *state, const char *const *states)
{
    while (*states && (!state || strcmp(state, *states) != 0))
        states++;
    return *states != NULL;
}

static void add_job(struct top_picture *picture, json_t *job, const char *node, json_int_t first_id, int64_t ahead_ns)
{
    static const char *const running[] = {"PLACED", "RUNNING", "SUSPENDED", "STOPPING", "REQUEUING", NULL};
    int64_t slurm = answer_integer(job, "slurm_job", 0), id = answer_integer(job, "id", 0);
    bool runs = is_one_of(answer_text(job, "state"), running);

    json_object_set_new(job, "node", json_string(node));
    json_object_set_new(job, "shown_id", json_integer(slurm > 0 ? slurm : id));
    json_object_set_new(job, "id", json_integer(first_id + id % NODE_IDS));
    shift(job, "started_ns", -ahead_ns);
    shift(job, "submitted_ns", -ahead_ns);
    json_array_append(json_object_get(runs ? picture->running : picture->waiting, "jobs"), job);
}

static void add_node(struct top_picture *picture, const json_t *node, json_int_t first_id)
{
    const char *name = answer_text(node, "name"), *error = answer_text(node, "error");
    json_t *gpus = json_object_get(picture->gpus, "gpus"), *gpu, *job;
    int64_t now_ns = nodetime_shown_now_ns();
    size_t i;

    if (error)
        json_array_append_new(gpus, json_pack("{s:s, s:s}", "node", name, "error", error));
    json_array_foreach (json_object_get(node, "gpus"), i, gpu) {
        if (i == NODE_GPUS)
            break;
        json_object_set_new(gpu, "node", json_string(name));
        json_array_append(gpus, gpu);
    }
    json_array_foreach (json_object_get(node, "jobs"), i, job) {
        if (i == NODE_JOBS)
            break;
        if (json_is_object(job))
            add_job(picture, job, name, first_id, answer_integer(node, "now_ns", now_ns) - now_ns);
    }
}

static void add_slurm(struct top_picture *picture, const json_t *slurm)
{
    json_t *jobs = json_object_get(picture->waiting, "jobs"), *job;
    int64_t now_ns = nodetime_shown_now_ns();
    size_t i;

    if (answer_text(slurm, "error")) /* in the place of missing values */
        json_array_append_new(jobs, json_pack("{s:s, s:s, s:{s:s}, s:I}", "name", "squeue", "state", "QUEUED", "reason",
                                              "text", answer_text(slurm, "error"), "submitted_ns", (json_int_t)now_ns));
    json_array_foreach (json_object_get(slurm, "waiting"), i, job) {
        int64_t waited_s = (int64_t)time(NULL) - answer_integer(job, "submitted_s", 0);
        CLEANUP(free_ptr) char *why = slurm_why(job);
        json_int_t id = strtol(answer_text(job, "job"), NULL, 10);
        if (json_array_size(jobs) == TOP_MOST_JOBS)
            break;
        json_array_append_new(jobs, json_pack("{s:I, s:I, s:O, s:O, s:s, s:{s:s}, s:I}", "id", id, "shown_id", id,
                                              "name", json_object_get(job, "name"), "user",
                                              json_object_get(job, "user"), "state", "QUEUED", "reason", "text", why,
                                              "submitted_ns", (json_int_t)(now_ns - waited_s * NS_PER_SEC)));
    }
}

int top_cluster_picture(const struct cluster *cluster, struct top_picture *picture, struct error *err)
{
    CLEANUP(json_release) json_t *reply = NULL;
    json_int_t now_ns = nodetime_shown_now_ns();
    const json_t *nodes;
    size_t i, silent = 0;
    json_t *node;
    int rc = cluster_ask_all(cluster, &reply, err);

    if (rc)
        return rc;
    nodes = json_object_get(reply, "nodes");
    picture->gpus = json_pack("{s:[]}", "gpus");
    picture->running = json_pack("{s:[], s:I}", "jobs", "now_ns", now_ns);
    picture->waiting = json_pack("{s:[], s:I}", "jobs", "now_ns", now_ns);
    json_array_foreach (nodes, i, node) {
        silent += answer_text(node, "error") != NULL;
        add_node(picture, node, (json_int_t)(i + 1) * NODE_IDS);
    }
    add_slurm(picture, json_object_get(reply, "slurm"));
    picture->status =
        json_pack("{s:{s:I, s:I}, s:I, s:I, s:I}", "counts", "RUNNING",
                  (json_int_t)json_array_size(json_object_get(picture->running, "jobs")), "QUEUED",
                  (json_int_t)json_array_size(json_object_get(picture->waiting, "jobs")), "now_ns", now_ns, "nodes",
                  (json_int_t)json_array_size(nodes), "nodes_silent", (json_int_t)silent);
    return 0;
}
