#include "slurm/agent/node.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/kernel/aside.h"
#include "base/memory.h"
#include "base/proc.h"
#include "slurm/agent/counts.h"
#include "slurm/agent/orders.h"
#include "slurm/agent/slurm.h"
#include "slurm/shared/ask.h"

enum { STEPD_SEARCH_MS = 1000 };

static int set_counts(const struct agent *agent, const char *list, struct error *err)
{
    char node[160], gres[600];
    struct strbuf said = {0};
    int rc;

    snprintf(node, sizeof node, "NodeName=%s", agent->node);
    snprintf(gres, sizeof gres, "Gres=%s", list);
    rc = slurm_run("scontrol", (const char *[]){"update", node, gres, NULL}, &said, err);
    strbuf_release(&said);
    if (!rc)
        agent_say("%s now counts %s", agent->node, list);
    return rc;
}

/* Files of the spool while GPUs are lost: the node's list before, and the one that was set. */
static const char FULL[] = "counts", LOWERED[] = "counts.set";

static void path_of(const struct agent *agent, const char *name, char path[static 512])
{
    snprintf(path, 512, "%s/%s", agent->spool, name);
}

static bool read_list(const struct agent *agent, const char *name, char list[static NODE_LIST_BYTES])
{
    CLEANUP(free_ptr) char *text = NULL;
    struct error err;
    char path[512];
    size_t length;

    path_of(agent, name, path);
    if (file_read(path, NODE_LIST_BYTES - 1, &text, &length, &err))
        return false;
    snprintf(list, NODE_LIST_BYTES, "%s", text);
    return true;
}

static int write_list(const struct agent *agent, const char *name, const char *list, struct error *err)
{
    char path[512];

    path_of(agent, name, path);
    return file_write_atomic(path, list, strlen(list), 0600, err);
}

static int read_present(const struct agent *agent, char list[static NODE_LIST_BYTES], struct error *err)
{
    struct strbuf line = {0};
    int rc = slurm_show_node(agent->node, &line, err);

    if (!rc && !counts_property(line.text, "Gres", list, NODE_LIST_BYTES))
        rc = error_set(err, EINVAL, "Slurm's node %s has no GRES", agent->node);
    strbuf_release(&line);
    return rc;
}

int node_full_list(const struct agent *agent, char list[static NODE_LIST_BYTES], struct error *err)
{
    return read_list(agent, FULL, list) ? 0 : read_present(agent, list, err);
}

static int lower(const struct agent *agent, int64_t gpus, int64_t lost, struct error *err)
{
    char full[NODE_LIST_BYTES], present[NODE_LIST_BYTES], set[NODE_LIST_BYTES] = "";
    struct strbuf lowered = {0};
    int rc = read_present(agent, present, err);

    if (!rc && !read_list(agent, FULL, full)) {
        snprintf(full, sizeof full, "%s", present);
        rc = write_list(agent, FULL, full, err);
    }
    if (!rc) {
        counts_lower(full, gpus, gpus - lost, &lowered);
        read_list(agent, LOWERED, set);
        /* Slurm writes a list in its own way, so that only the counts that were set can be compared. The list is whole
         * again after a start of slurmctld, which reads its configuration anew. */
        if (strcmp(lowered.text, set) != 0 || strcmp(present, full) == 0)
            rc = set_counts(agent, lowered.text, err);
        if (!rc && strcmp(lowered.text, set) != 0)
            rc = write_list(agent, LOWERED, lowered.text, err);
    }
    strbuf_release(&lowered);
    return rc;
}

static int set_back(const struct agent *agent, struct error *err)
{
    char full[NODE_LIST_BYTES], path[512];
    int rc;

    if (!read_list(agent, FULL, full))
        return 0;
    rc = set_counts(agent, full, err);
    if (rc)
        return rc;
    path_of(agent, LOWERED, path);
    unlink(path);
    path_of(agent, FULL, path);
    unlink(path);
    return 0;
}

static void look_at_counts(const struct agent *agent)
{
    json_t *capacity = NULL;
    struct error err;
    int64_t gpus, lost;

    if (agent_ask(agent, "GET", "/v1/capacity", NULL, &capacity, &err))
        return; /* an absent carmad refuses leases: nothing is started meanwhile */
    gpus = json_integer_value(json_object_get(capacity, "gpus"));
    lost = json_integer_value(json_object_get(capacity, "lost"));
    json_decref(capacity);
    if (gpus < 1 || lost < 0 || lost > gpus)
        return;
    if (lost > 0 ? lower(agent, gpus, lost, &err) : set_back(agent, &err))
        agent_say("%s: counts: %s", agent->node, err.text);
}

struct stepd_search {
    char title[64]; /* as it begins */
    uid_t owner;    /* beside root */
};

static bool is_stepd(pid_t pid, const struct stepd_search *search)
{
    char comm_path[64], path[64], *comm = NULL, *title = NULL;
    size_t length;
    uid_t uid;
    bool is;

    snprintf(comm_path, sizeof comm_path, "/proc/%d/comm", (int)pid);
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    is = proc_read_uid(pid, &uid) == 0 && (uid == 0 || uid == search->owner) &&
         file_read(comm_path, 256, &comm, &length, NULL) == 0 && strcmp(comm, "slurmstepd\n") == 0 &&
         file_read(path, 64 << 10, &title, &length, NULL) == 0 &&
         strncmp(title, search->title, strlen(search->title)) == 0;
    free(comm);
    free(title);
    return is;
}

static void find_stepd(const void *user, int fd)
{
    const struct dirent *entry;
    DIR *proc = opendir("/proc");
    bool found = !proc;

    while (!found && (entry = readdir(proc)))
        found = isdigit((unsigned char)entry->d_name[0]) && is_stepd((pid_t)atol(entry->d_name), user);
    if (found)
        (void)!write(fd, "1", 1);
}

/* Whether a slurmstepd on this machine calls the job's script its own: "slurmstepd: [12.batch]". One that cannot be
 * asked may. */
static bool has_batch_stepd(const struct agent *agent, uint32_t job)
{
    struct stepd_search search = {0};
    struct stat carmads;
    char *found;
    bool none;

    snprintf(search.title, sizeof search.title, "slurmstepd: [%u.batch", job);
    search.owner = stat(agent->socket, &carmads) == 0 ? carmads.st_uid : geteuid();
    found = aside_ask(find_stepd, &search, STEPD_SEARCH_MS);
    none = found && !*found;
    free(found);
    return !none;
}

static bool has_batch_step(const json_t *lease)
{
    const json_t *step;
    size_t i;

    json_array_foreach (json_object_get(lease, "steps"), i, step)
        if (strcmp(json_string_value(step), "batch") == 0)
            return true;
    return false;
}

static bool was_orphan(const struct node_watch *watch, const struct orphan *orphan)
{
    for (size_t i = 0; i < watch->count; i++)
        if (watch->orphans[i].job == orphan->job && watch->orphans[i].task == orphan->task)
            return true;
    return false;
}

/* A job whose slurmstepd was killed runs for ever in Slurm's view: nobody tells it. A batch script's slurmstepd is
 * there as long as the job, but for the moment of its end. Between the steps of a job without one (salloc's, or a node
 * beside the script's) there is none, rightly. But a task ends before its slurmstepd: one that lives at two looks, and
 * had none in between, has lost it. carmad knows whether any of the lease's lives. */
static void look_at_orphan(const struct agent *agent, const struct node_watch *before, struct node_watch *now,
                           const json_t *lease)
{
    uint32_t job = (uint32_t)json_integer_value(json_object_get(lease, "job"));
    bool batch = has_batch_step(lease), stepd = json_is_true(json_object_get(lease, "teller"));
    struct orphan orphan = {.job = job, .task = batch ? 0 : json_integer_value(json_object_get(lease, "task"))};
    struct slurm_job slurms;
    struct strbuf said = {0};
    struct error err;
    int rc;

    if (batch ? stepd && has_batch_stepd(agent, job) : stepd || orphan.task == 0)
        return;
    now->orphans = xrealloc(now->orphans, now->count + 1, sizeof *now->orphans);
    now->orphans[now->count++] = orphan;
    if (!was_orphan(before, &orphan))
        return;
    rc = slurm_show_job(job, &slurms, &err);
    /* A job that was requeued may have begun again, with a slurmstepd to come: the lease is of the run before. */
    if (!rc && strcmp(slurms.state, "RUNNING") == 0 &&
        slurms.restarts == json_integer_value(json_object_get(lease, "restart"))) {
        agent_say("job %s has no slurmstepd any more: cancelled", slurms.name);
        rc = slurm_run("scancel", (const char *[]){slurms.name, NULL}, &said, &err);
    }
    if (rc)
        agent_say("%s", err.text);
    strbuf_release(&said);
}

static bool is_listed(const char *ids, uint32_t job)
{
    char *end;

    for (const char *at = ids; at && *at; at = *end ? end + 1 : NULL) {
        if (strtoul(at, &end, 10) == job && end > at)
            return true;
        if (end == at)
            end++;
    }
    return false;
}

static void tell_suspension(const struct agent *agent, const json_t *lease, const char *suspended)
{
    uint32_t job = (uint32_t)json_integer_value(json_object_get(lease, "job"));
    bool is = is_listed(suspended, job), was = json_is_true(json_object_get(lease, "suspended"));
    struct error err;
    json_t *reply = NULL;
    char path[96];

    if (is == was)
        return;
    snprintf(path, sizeof path, "/v1/leases/%lld/%s", (long long)json_integer_value(json_object_get(lease, "id")),
             is ? "suspend" : "resume");
    if (agent_ask(agent, "POST", path, NULL, &reply, &err))
        agent_say("job %u: %s", job, err.text);
    json_decref(reply);
}

bool node_look(const struct agent *agent, struct node_watch *watch)
{
    struct node_watch now = {0};
    struct strbuf suspended = {0};
    json_t *reply = NULL, *lease;
    struct error err;
    size_t i;
    bool asked = false, known = false, fewer;

    look_at_counts(agent);
    if (agent_ask(agent, "GET", "/v1/leases", NULL, &reply, &err))
        return false;
    json_array_foreach (json_object_get(reply, "leases"), i, lease) {
        const char *state = json_string_value(json_object_get(lease, "state"));
        const char *node = json_string_value(json_object_get(lease, "node"));

        if (!state || (strcmp(state, "RUNNING") != 0 && strcmp(state, "SUSPENDED") != 0) || !node ||
            strcmp(node, agent->node) != 0)
            continue;
        now.leases++;
        orders_carry_out(agent); /* a job's end waits for them, and many leases take seconds on a busy machine */
        look_at_orphan(agent, watch, &now, lease);
        if (!asked) {
            known = !slurm_run("squeue", (const char *[]){"-h", "-t", "S", "-o", "%A", "-w", agent->node, NULL},
                               &suspended, &err);
            asked = true;
        }
        if (known)
            tell_suspension(agent, lease, suspended.text);
    }
    json_decref(reply);
    strbuf_release(&suspended);
    fewer = now.leases < watch->leases;
    node_watch_release(watch);
    *watch = now;
    return fewer;
}

void node_watch_release(struct node_watch *watch)
{
    free(watch->orphans);
    *watch = (struct node_watch){0};
}
