#include "cli/cluster/slurm.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/show/answer.h"
#include "cli/show/term.h"

/* %i and not --json: Debian's Slurm has no plugin for that. The name comes last: it may hold a bar. */
const char *const slurm_waiting_argv[] = {
    "env", "SLURM_TIME_FORMAT=%s", "squeue", "-h", "-t", "PD", "-o", "%i|%D|%V|%u|%b|%r|%j", NULL,
};
enum { JOB, NODES, SUBMITTED, USER, GRES, REASON, NAME, FIELDS };

/* Bytes that are not UTF-8 become their escapes. */
static json_t *text_of(const char *text)
{
    json_t *json = json_string(text);
    CLEANUP(free_ptr) char *safe = json ? NULL : term_escape(text);

    return json ? json : json_string(safe);
}

/* NULL: the line is not squeue's. */
static json_t *read_line(char *line)
{
    const char *fields[FIELDS];
    size_t count = 0;

    while (count < NAME && line)
        fields[count++] = strsep(&line, "|");
    if (!line)
        return NULL;
    fields[NAME] = line;
    return json_pack("{s:o, s:o, s:I, s:o, s:I, s:o, s:o}", "job", text_of(fields[JOB]), "user", text_of(fields[USER]),
                     "nodes", (json_int_t)strtol(fields[NODES], NULL, 10), "gres", text_of(fields[GRES]), "submitted_s",
                     (json_int_t)strtol(fields[SUBMITTED], NULL, 10), "reason", text_of(fields[REASON]), "name",
                     text_of(fields[NAME]));
}

json_t *slurm_waiting(const struct child *squeue, int64_t timeout_ms)
{
    CLEANUP(free_ptr) char *why = NULL;
    CLEANUP(free_ptr) char *copy = NULL;
    char *rest, *line;
    json_t *jobs;

    if (squeue->end == CHILD_ENDED && squeue->status >> 8 == 127) /* env(1) has not found it */
        return NULL;
    if (squeue->end != CHILD_ENDED || squeue->status) {
        why = cluster_why(squeue, timeout_ms);
        return json_pack("{s:s}", "error", why);
    }
    jobs = json_array();
    rest = copy = xstrdup(squeue->out.text ? squeue->out.text : "");
    while ((line = strsep(&rest, "\n"))) {
        json_t *job = *line ? read_line(line) : NULL;
        if (job)
            json_array_append_new(jobs, job);
    }
    return json_pack("{s:o}", "waiting", jobs);
}

int cluster_ask_all(const struct cluster *cluster, json_t **reply, struct error *err)
{
    static const char *const gpus[] = {"gpus", "--json", NULL}, *const queue[] = {"queue", "--json", NULL};
    static const char *const *const commands[] = {gpus, queue};
    CLEANUP(child_release) struct child squeue = {.argv = slurm_waiting_argv};
    int rc = cluster_ask(cluster, commands, array_size(commands), &squeue, reply, err);
    json_t *slurm = rc ? NULL : slurm_waiting(&squeue, cluster->timeout_ms);

    if (slurm)
        json_object_set_new(*reply, "slurm", slurm);
    return rc;
}

char *slurm_why(const json_t *job)
{
    int64_t nodes = answer_integer(job, "nodes", 1);
    CLEANUP(free_ptr) char *many = nodes > 1 ? xasprintf(" on %" PRId64 " nodes", nodes) : xstrdup("");

    return xasprintf("%s (%s%s)", answer_text(job, "reason"), answer_text(job, "gres"), many);
}
