#include "slurm/agent/node.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "slurm/agent/counts.h"
#include "slurm/agent/slurm.h"

static int set_counts(const struct agent *agent, const char *list, struct error *err)
{
    char node[160], gres[600];
    struct text said = {0};
    int rc;

    snprintf(node, sizeof node, "NodeName=%s", agent->node);
    snprintf(gres, sizeof gres, "Gres=%s", list);
    rc = slurm_run("scontrol", (const char *[]){"update", node, gres, NULL}, &said, err);
    text_release(&said);
    if (!rc)
        agent_say("%s now counts %s", agent->node, list);
    return rc;
}

/* The node's full list is kept in the file `counts` of the spool while GPUs are lost. */
static void look_at_counts(const struct agent *agent)
{
    char list[512] = "", path[512], *full = NULL;
    struct text line = {0}, lowered = {0};
    json_t *capacity = NULL;
    struct error err;
    size_t length;
    int64_t gpus, lost;
    bool was_lowered;
    int rc = agent_ask(agent, "GET", "/v1/capacity", NULL, &capacity, &err);

    if (rc)
        return; /* an absent carmad refuses leases: nothing is started meanwhile */
    gpus = json_integer_value(json_object_get(capacity, "gpus"));
    lost = json_integer_value(json_object_get(capacity, "lost"));
    json_decref(capacity);
    snprintf(path, sizeof path, "%s/counts", agent->spool);
    was_lowered = access(path, F_OK) == 0;
    if (gpus < 1 || lost < 0 || lost > gpus || (lost == 0 && !was_lowered))
        return;
    rc = slurm_show_node(agent->node, &line, &err);
    if (!rc && !counts_property(line.bytes, "Gres", list, sizeof list))
        rc = error_set(&err, EINVAL, "Slurm's node %s has no GRES", agent->node);
    if (!rc && !was_lowered)
        rc = file_write_atomic(path, list, strlen(list), 0600, &err);
    if (!rc)
        rc = file_read(path, sizeof list - 1, &full, &length, &err);
    if (!rc)
        counts_lower(full, gpus, gpus - lost, &lowered);
    if (!rc && lost > 0 && strcmp(lowered.bytes, list) != 0)
        rc = set_counts(agent, lowered.bytes, &err);
    if (!rc && lost == 0) {
        rc = set_counts(agent, full, &err);
        if (!rc)
            unlink(path);
    }
    if (rc)
        agent_say("%s: counts: %s", agent->node, err.text);
    free(full);
    text_release(&lowered);
    text_release(&line);
}

/* The jobs that a slurmstepd on this machine calls its own: "slurmstepd: [12.batch]". */
static bool has_stepd(uint32_t job)
{
    char wanted[64], path[300], *text;
    bool found = false;
    struct dirent *entry;
    struct error err;
    size_t length;
    DIR *proc = opendir("/proc");

    if (!proc)
        return true;
    snprintf(wanted, sizeof wanted, "slurmstepd: [%u.", job);
    while (!found && (entry = readdir(proc))) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        snprintf(path, sizeof path, "/proc/%s/cmdline", entry->d_name);
        if (file_read(path, 64 << 10, &text, &length, &err))
            continue;
        found = strncmp(text, wanted, strlen(wanted)) == 0;
        free(text);
    }
    closedir(proc);
    return found;
}

static bool was_orphan(const struct node_watch *watch, uint32_t job)
{
    for (size_t i = 0; i < watch->count; i++)
        if (watch->orphans[i] == job)
            return true;
    return false;
}

/* Slurm believes for ever that a job runs whose slurmstepd was killed: nobody tells it. Found twice, it is cancelled.
 */
static void look_at_orphan(const struct agent *agent, const struct node_watch *before, struct node_watch *now,
                           uint32_t job)
{
    struct text said = {0};
    struct error err;
    char id[16];

    if (has_stepd(job))
        return;
    now->orphans = xrealloc(now->orphans, now->count + 1, sizeof *now->orphans);
    now->orphans[now->count++] = job;
    if (!was_orphan(before, job))
        return;
    snprintf(id, sizeof id, "%u", job);
    agent_say("job %u has no slurmstepd any more: cancelled", job);
    if (slurm_run("scancel", (const char *[]){id, NULL}, &said, &err))
        agent_say("%s", err.text);
    text_release(&said);
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

void node_look(const struct agent *agent, struct node_watch *watch)
{
    struct node_watch now = {0};
    struct text suspended = {0};
    json_t *reply = NULL, *lease;
    struct error err;
    size_t i;
    bool asked = false, known = false;

    look_at_counts(agent);
    if (agent_ask(agent, "GET", "/v1/leases", NULL, &reply, &err))
        return;
    json_array_foreach (json_object_get(reply, "leases"), i, lease) {
        const char *state = json_string_value(json_object_get(lease, "state"));
        const char *node = json_string_value(json_object_get(lease, "node"));

        if (!state || strcmp(state, "RUNNING") != 0 || !node || strcmp(node, agent->node) != 0)
            continue;
        look_at_orphan(agent, watch, &now, (uint32_t)json_integer_value(json_object_get(lease, "job")));
        if (!asked) {
            known = !slurm_run("squeue", (const char *[]){"-h", "-t", "S", "-o", "%A", "-w", agent->node, NULL},
                               &suspended, &err);
            asked = true;
        }
        if (known)
            tell_suspension(agent, lease, suspended.bytes);
    }
    json_decref(reply);
    text_release(&suspended);
    node_watch_release(watch);
    *watch = now;
}

void node_watch_release(struct node_watch *watch)
{
    free(watch->orphans);
    *watch = (struct node_watch){0};
}
