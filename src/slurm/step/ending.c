#include "slurm/step/ending.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/kernel/aside.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "slurm/shared/ask.h"
#include "slurm/shared/spool.h"
#include "slurm/step/request.h"
#include "slurm/step/words.h"

/* Their sums bound the plugin's patience (slurm/plugin/callbacks.c). */
enum {
    /* For the agent to order a requeue, or to note what the job used, while Slurm still holds the job running. */
    AGENT_WAIT_MS = 5000,
    RETRY_WAIT_MS = 20000, /* a job that Slurm is told to have failed has failed to its dependents */
    END_WAIT_MS = 5000,
    /* carmad alone tells whether for lack of memory. The lease stays as long as this slurmstepd (launch/lease.h). With
     * all other waits at a job's end it is less than UnkillableStepTimeout's minute, after which Slurm drains the node.
     */
    FAILED_WAIT_MS = 30000,
    TAIL_WAIT_MS = 3000,
    TAIL_BYTES = 64 << 10,
};

/* `wait_ms` 0: nobody waits for the agent. */
static void leave_order(const struct step *step, const char *what, const char *lines, int64_t wait_ms)
{
    struct error err;

    if (spool_order(step->spool, step->job, step->restart, what, lines, &err))
        answer("error %s", err.text);
    else if (wait_ms && !spool_await(step->spool, step->job, step->restart, what, ask_now_ms() + wait_ms))
        answer("error carma-slurm-agent does not answer: job %u waits for it in %s", step->job, step->spool);
}

void ending_hand_back(const struct step *step, int code, const char *reason)
{
    CLEANUP(free_ptr)
    char *lines = xasprintf("never %d\nroom %d\nreason %.383s\n", code == -ERANGE, code == -EBUSY, reason);

    answer("error %s has no GPU for job %u now (%s): it goes back to the queue where it may be requeued", step->node,
           step->job, reason);
    answer_send();
    leave_order(step, "refused", lines, RETRY_WAIT_MS);
}

/* Ended by the batch step already, or by carmad. */
static bool is_over(const json_t *lease)
{
    static const char *const live[] = {"QUEUED", "SUBMITTED", "PLACED", "STARTING", "RUNNING", "SUSPENDED"};
    const char *state = json_string_value(json_object_get(lease, "state"));

    for (size_t i = 0; state && i < array_size(live); i++)
        if (strcmp(state, live[i]) == 0)
            return false;
    return true;
}

static bool is_ours(const struct step *step, const json_t *lease)
{
    const char *node = json_string_value(json_object_get(lease, "node"));

    return node && strcmp(node, step->node) == 0 &&
           json_integer_value(json_object_get(lease, "restart")) == (json_int_t)step->restart;
}

/* The lease of the step's job and restart on this node; with `over` also one that carmad has ended, where none lives.
 * 0: there is none, or a negative errno: -EBUSY without `over`, where its slurmstepd lives; else carmad does not tell.
 */
static int64_t find_lease(const struct step *step, bool over, int64_t deadline_ms, struct error *err)
{
    CLEANUP(strbuf_release) struct strbuf path = {0};
    json_t *reply = NULL, *lease;
    int64_t live = 0, ended = 0, id;
    size_t i;
    int rc;

    strbuf_printf(&path, "/v1/leases/by-key?job=%u&cluster=", step->job);
    for (const char *at = step->cluster; *at; at++)
        strbuf_printf(&path, "%%%02x", (unsigned char)*at);
    rc = ask_until(step->socket, deadline_ms, "GET", path.text, NULL, &reply, err);
    json_array_foreach (json_object_get(reply, "leases"), i, lease)
        if (is_ours(step, lease)) {
            id = json_integer_value(json_object_get(lease, "id"));
            if (!is_over(lease))
                live = !over && json_is_true(json_object_get(lease, "teller")) ? -EBUSY : id;
            else if (id > ended)
                ended = id;
        }
    json_decref(reply);
    return rc ? rc : live || !over ? live : ended;
}

/* The lines of an order about a job's end, the last of them JSON. */
static char *print_order(const struct step *step, const char *key, const json_t *json)
{
    CLEANUP(free_ptr) char *text = json_dumps(json, JSON_COMPACT | JSON_PRESERVE_ORDER);

    return xasprintf("gpus %lld\nmemory %lld\n%s %s\n", (long long)step->counts.gpus,
                     (long long)step_memory_bytes(step), key, text ? text : "{}");
}

/* Leaves carmad's answer to the agent, and waits until Slurm has been told. */
static void leave_to_agent(const struct step *step, bool stopped, const json_t *reply)
{
    const char *verdict = json_string_value(json_object_get(reply, "verdict"));
    bool retry = verdict && strcmp(verdict, "retry") == 0 && !stopped;
    CLEANUP(free_ptr) char *lines = print_order(step, "answer", reply);

    /* Without a script, the agent itself waits for the end of the epilog. */
    leave_order(step, retry ? "retry" : "ended", lines, !retry ? AGENT_WAIT_MS : step->batch ? RETRY_WAIT_MS : 0);
}

bool ending_of_lease(const struct step *step, int status, bool stopped, bool over, const char *output)
{
    bool failed = step->batch && over && status != 0 && !stopped;
    const int64_t deadline_ms = ask_now_ms() + (failed ? FAILED_WAIT_MS : END_WAIT_MS);
    struct error err = {""};
    const int64_t id = find_lease(step, over, deadline_ms, &err);
    CLEANUP(free_ptr) char *path = xasprintf("/v1/leases/%lld/end", (long long)id);
    json_t *body, *reply = NULL;
    int rc = id < 0 ? (int)id : 0;

    if (id == 0 || id == -EBUSY)
        return id == 0;
    body = json_pack("{s:i, s:b, s:o}", WIFSIGNALED(status) ? "signal" : "exit_status",
                     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), "stopped", stopped, "output",
                     output && *output ? words_json_of(output) : json_null());
    if (id > 0)
        rc = ask_until(step->socket, deadline_ms, "POST", path, body, &reply, &err);
    if (rc == 0)
        leave_to_agent(step, stopped, reply);
    else
        answer("error job %u's lease cannot be ended now (%s): carma-slurm-agent tells carmad when it answers",
               step->job, err.text);
    if (rc && over && step->counts.gpus > 0) { /* the agent is told then whether the job goes back */
        CLEANUP(free_ptr) char *lines = print_order(step, "body", body);
        leave_order(step, "end", lines, 0);
    }
    json_decref(body);
    json_decref(reply);
    return true;
}

/* ---- The output ---- */

static bool become_user(void)
{
    const uid_t uid = (uid_t)request_number("uid", -1);
    const gid_t gid = (gid_t)request_number("gid", -1);
    gid_t *groups = NULL;
    size_t count = 0, capacity = 0;
    char *end;

    for (const char *at = request_text("groups", ""); *at; at = *end ? end + 1 : end) {
        array_reserve(groups, capacity, count + 1);
        groups[count++] = (gid_t)strtoul(at, &end, 10);
    }
    return uid != (uid_t)-1 && gid != (gid_t)-1 && setgroups(count, groups) == 0 && setresgid(gid, gid, gid) == 0 &&
           setresuid(uid, uid, uid) == 0;
}

/* In a child: its user's file system may hang. */
static void read_tail(const void *path, int to)
{
    struct stat info;
    char part[4096];
    ssize_t got;
    off_t at;
    int fd = become_user() ? open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;

    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return;
    at = info.st_size > TAIL_BYTES ? info.st_size - TAIL_BYTES : 0;
    for (off_t end = info.st_size; at < end && (got = pread(fd, part, sizeof part, at)) > 0; at += got) {
        for (ssize_t i = 0; i < got; i++)
            part[i] = part[i] ? part[i] : '?';
        if (write(to, part, (size_t)got) != got)
            return;
    }
}

char *ending_output(const struct step *step)
{
    const char *path = request_text("stderr", "");
    char *output = *path == '/' ? aside_ask(read_tail, path, TAIL_WAIT_MS) : NULL;

    if (*path == '/' && !output)
        answer("error the end of %s, job %u's output, cannot be read in time", path, step->job);
    return output;
}
