#include "slurm/plugin/ending.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "slurm/plugin/http.h"
#include "slurm/plugin/lease.h"
#include "slurm/plugin/plugin.h"
#include "slurm/plugin/spool.h"

enum {
    /* For the agent to order a requeue, or to note what the job used, while Slurm still holds the job running. */
    AGENT_WAIT_MS = 5000,
    RETRY_WAIT_MS = 20000, /* a job that Slurm is told to have failed has failed to its dependents */
    END_WAIT_MS = 5000,
    /* carmad alone tells whether for lack of memory. The lease stays as long as this slurmstepd (launch/lease.h). With
     * all other waits at a job's end it is less than UnkillableStepTimeout's minute, after which Slurm drains the node.
     */
    FAILED_WAIT_MS = 30000,
};

void ending_hand_back(const struct step *step, int code, struct json answer)
{
    char error[384];
    if (code == -ENODATA)
        snprintf(error, sizeof(error), "slurmctld does not tell what it counts for it");
    else if (!json_read_string(json_member(answer, "error"), error, sizeof(error)))
        snprintf(error, sizeof(error), "carmad at %s: %s", plugin_settings.socket, strerror(-code));
    slurm_error("carma: %s has no GPU for job %u now (%s): it goes back to the queue where it may be requeued",
                step->node, step->job, error);
    char lines[640];
    snprintf(lines, sizeof(lines), "never %d\nroom %d\nreason %s\n", code == -ERANGE, code == -EBUSY, error);
    code = spool_order(plugin_settings.spool, step->job, step->restart, "refused", lines);
    if (code != 0)
        slurm_error("carma: %s cannot be written: %s", plugin_settings.spool, strerror(-code));
    else if (!spool_await(plugin_settings.spool, step->job, step->restart, "refused", http_now_ms() + RETRY_WAIT_MS))
        slurm_error("carma: carma-slurm-agent does not answer: job %u waits for it in %s", step->job,
                    plugin_settings.spool);
}

/* Ended by the batch step already, or by carmad. */
static bool is_over(struct json lease)
{
    static const char *const live[] = {"QUEUED", "SUBMITTED", "PLACED", "STARTING", "RUNNING", "SUSPENDED"};
    char state[24];

    for (size_t i = 0; json_read_string(json_member(lease, "state"), state, sizeof state) && i < 5; i++)
        if (strcmp(state, live[i]) == 0)
            return false;
    return true;
}

/* The lease of the step's job and restart on this node; with `over` also one that carmad has ended, where none lives.
 * 0: there is none, or a negative errno: -EBUSY without `over`, where its slurmstepd lives; else carmad does not tell.
 */
static int64_t find_lease(const struct step *step, bool over, int64_t deadline_ms)
{
    struct text answer = {0};
    struct json walk = {0}, name, lease;
    int64_t live = 0, ended = 0, id, restart;
    char node[64];

    int code = lease_list(plugin_settings.socket, step->cluster, step->job, deadline_ms, &answer);
    if (code == 0)
        while (json_next(json_member(json_of(answer.bytes, answer.length), "leases"), &walk, &name, &lease))
            if (json_read_integer(json_member(lease, "id"), &id) &&
                json_read_integer(json_member(lease, "restart"), &restart) && restart == step->restart &&
                json_read_string(json_member(lease, "node"), node, sizeof node) && strcmp(node, step->node) == 0) {
                if (!is_over(lease))
                    live = !over && json_is_yes(json_member(lease, "teller")) ? -EBUSY : id;
                else if (id > ended)
                    ended = id;
            }
    text_release(&answer);
    return code != 0 ? code : live != 0 || !over ? live : ended;
}

/* Leaves carmad's answer to the agent, and waits until Slurm has been told. */
static void leave_to_agent(const struct step *step, bool stopped, const struct text *answer)
{
    char verdict[16] = "";
    bool retry =
        json_read_string(json_member(json_of(answer->bytes, answer->length), "verdict"), verdict, sizeof verdict) &&
        strcmp(verdict, "retry") == 0 && !stopped;
    const char *what = retry ? "retry" : "ended";
    struct text lines = {0};
    int code;

    text_printf(&lines, "gpus %lld\nmemory %lld\nanswer ", (long long)step->counts.gpus,
                (long long)(step->counts.gpus > 0 ? step->counts.memory_bytes / step->counts.gpus : 0));
    for (size_t i = 0; i < answer->length; i++)
        text_add(&lines, answer->bytes[i] == '\n' ? " " : answer->bytes + i, 1);
    text_add(&lines, "\n", 1);
    code = lines.failed ? -ENOMEM : spool_order(plugin_settings.spool, step->job, step->restart, what, lines.bytes);
    if (code != 0)
        slurm_error("carma: %s cannot be written: %s", plugin_settings.spool, strerror(-code));
    else if ((!retry || step->step == STEP_BATCH) && /* the agent itself waits for the end of the epilog */
             !spool_await(plugin_settings.spool, step->job, step->restart, what,
                          http_now_ms() + (retry ? RETRY_WAIT_MS : AGENT_WAIT_MS)))
        slurm_error("carma: carma-slurm-agent does not answer: job %u waits for it in %s", step->job,
                    plugin_settings.spool);
    text_release(&lines);
}

/* carmad does not answer: the agent tells it the end of a batch job later, and is told then whether the job goes back.
 */
static void leave_end_to_agent(const struct step *step, int status, bool stopped, const struct text *output)
{
    struct text lines = {0};
    int code;

    text_printf(&lines, "gpus %lld\nmemory %lld\nbody ", (long long)step->counts.gpus,
                (long long)(step->counts.memory_bytes / step->counts.gpus));
    lease_write_end(&lines, status, stopped, output);
    text_add(&lines, "\n", 1);
    code = lines.failed ? -ENOMEM : spool_order(plugin_settings.spool, step->job, step->restart, "end", lines.bytes);
    if (code != 0)
        slurm_error("carma: %s cannot be written: %s", plugin_settings.spool, strerror(-code));
    text_release(&lines);
}

bool ending_of_lease(const struct step *step, int status, bool stopped, bool over, const struct text *output)
{
    bool failed = step->step == STEP_BATCH && over && status != 0 && !stopped;
    int64_t deadline_ms = http_now_ms() + (failed ? FAILED_WAIT_MS : END_WAIT_MS);
    int64_t id = find_lease(step, over, deadline_ms);
    struct text answer = {0};
    int code = (int)id;

    if (id == 0 || id == -EBUSY)
        return id == 0;
    if (id > 0)
        code = lease_end(plugin_settings.socket, id, status, stopped, output, deadline_ms, &answer);
    if (code == 0)
        leave_to_agent(step, stopped, &answer);
    else
        slurm_error("carma: job %u's lease cannot be ended now (%s): carma-slurm-agent tells carmad when it answers",
                    step->job, strerror(-code));
    if (code != 0 && over && step->counts.gpus > 0)
        leave_end_to_agent(step, status, stopped, output);
    text_release(&answer);
    return true;
}
