#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/nodetime.h"
#include "base/units.h"
#include "launch/cause.h"
#include "launch/cgroup/cgroup.h"
#include "launch/shepherd/shepherd.h"
#include "launch/steps.h"

#define ABANDON_NS (5 * NS_PER_SEC) /* after SIGKILL: a start that is still there hangs in the kernel */

void ending_begin(struct shepherd *s)
{
    if (s->kill_at_ns)
        return;
    s->kill_at_ns = nodetime_monotonic_wall_ns() + s->request.grace_ns;
    if (s->process_ended && s->request.container) /* what is left is its engine's */
        s->kill_at_ns = nodetime_monotonic_wall_ns();
    if (*s->status.cgroup)
        cgroup_freeze(s->status.cgroup); /* else a child that is forked meanwhile misses the signal */
    tree_signal(&s->tree, getpid(), SIGTERM);
    tree_signal(&s->tree, getpid(), SIGCONT); /* a stopped process does not act on SIGTERM */
    if (*s->status.cgroup)
        cgroup_thaw(s->status.cgroup);
}

/* All at once by the control group, also those that fork; and one by one those that have left it, or where there is
 * none. */
void ending_kill(struct shepherd *s)
{
    /* A process that hangs in the kernel with SIGKILL pending runs no instruction of a program any more. A job with no
     * other processes has ended, and its GPUs are free. */
    if (s->status.phase == LAUNCH_STARTING && nodetime_monotonic_wall_ns() >= s->kill_at_ns + ABANDON_NS)
        s->abandoned = true;
    if (*s->status.cgroup)
        cgroup_kill(s->status.cgroup);
    tree_signal(&s->tree, getpid(), SIGKILL);
    s->kill_pause_ms = s->kill_pause_ms < KILL_PAUSE_MAX_MS ? 2 * s->kill_pause_ms : KILL_PAUSE_MAX_MS;
}

/* A child without SIGCHLD at its end is none of those that waitpid(2) waits for unless it is told to. */
pid_t ending_fork_helper(void)
{
    return (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
}

bool ending_reap(struct shepherd *s)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, NULL, __WCLONE | WNOHANG)) > 0) /* helpers */
        if (pid == s->tree.spared)
            s->tree.spared = 0;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == s->process) {
            s->process_ended = true;
            s->wait_status = status;
        }
    }
    if (pid < 0 && errno == ECHILD)
        return false;
    if (s->process_ended && left_is_settled(s))
        ending_begin(s);
    return true;
}

static void tell_host_oom(struct shepherd *s)
{
    CLEANUP(free_ptr) char *text = NULL;
    char limit[UNITS_TEXT];

    if (s->request.limits.memory_bytes)
        text = xasprintf("out of host memory: the kernel killed it, its limit is %s (--memory, job_memory_max)",
                         format_bytes(s->request.limits.memory_bytes, limit));
    else
        text = xstrdup("out of host memory: the kernel killed it, though it had no limit of its own (--memory)");
    status_set_message(&s->status, text, strlen(text));
}

/* A program whose output cannot be written has no other way to say so. */
static void tell_full(struct shepherd *s, const char *pattern)
{
    CLEANUP(free_ptr) char *path = launch_output_path(pattern, s->request.job, &s->request.array);
    CLEANUP(free_ptr) char *text = xasprintf("no space is left for its output '%s': free some", path);

    status_set_message(&s->status, text, strlen(text));
}

static uint32_t evidence_of(const struct shepherd *s, const struct tail_verdict *said)
{
    const struct classify_verdict *verdict = &said->verdict;
    bool says = verdict->kind == OUTPUT_GPU_OOM || verdict->kind == OUTPUT_GPU_HANDLE;
    uint32_t evidence = 0;

    if (says)
        evidence |= said->of_file ? EVIDENCE_FILE : EVIDENCE_OUTPUT;
    if (says && verdict->steps >= STEPS_ENOUGH)
        evidence |= EVIDENCE_STEPS;
    if (s->writers.itself)
        evidence |= EVIDENCE_ITSELF;
    if (verdict->own_error || verdict->outlived)
        evidence |= EVIDENCE_OWN;
    return evidence;
}

/* The facts to find out about a job that was not stopped. Of one with status 0, whether it tells of GPU memory. */
void ending_examine(struct shepherd *s)
{
    struct launch_status *status = &s->status;
    CLEANUP(free_ptr) char *left = launch_left_text(status);
    struct tail_verdict said;
    struct classify_verdict verdict;

    writers_take(s);
    tail_classify(&s->request, &s->output, &s->error, s->writers.files, s->writers.file_count, left, &said,
                  &s->checkpoint_removed);
    status->evidence = evidence_of(s, &said);
    if (status->exit_status == 0 && !(status->evidence & (EVIDENCE_OUTPUT | EVIDENCE_FILE)))
        return;
    verdict = said.verdict;
    status->host_oom_kill =
        status->exit_status != 0 && s->oom_kills >= 0 && cgroup_oom_kills(s->memory_group) > s->oom_kills;
    status->host_oom_own = status->host_oom_kill && *status->cgroup && cgroup_counts_memory(status->cgroup);
    status->output = said.of_file ? OUTPUT_NOTHING : verdict.kind;
    status->requested_bytes = verdict.requested_bytes;
    status->free_bytes = verdict.free_bytes;
    status->tenant_count = verdict.tenant_count;
    memcpy(status->tenants, verdict.tenants, sizeof status->tenants);
    status_set_message(status, verdict.line, strnlen(verdict.line, sizeof verdict.line));
    if (status->host_oom_own)
        tell_host_oom(s);
    else if ((said.output_full || said.error_full) && !*status->message)
        tell_full(s, said.output_full ? s->request.output : s->request.error);
}

void ending_conclude(struct shepherd *s)
{
    struct launch_status *status = &s->status;
    struct cause_evidence evidence;
    static const char hangs[] = "; a process of the start hangs in the kernel, and is killed when it returns";
    const char *who = s->request.conda_environment ? "conda: the login shell" : "the launch";
    char text[128], duration[UNITS_TEXT];

    status->ended_ns = nodetime_now_ns();
    if (!s->not_run && status->phase == LAUNCH_STARTING && !status->timed_out && (!s->exec_said || s->abandoned)) {
        if (status->stopped)
            snprintf(text, sizeof text, "stopped before the command was run%s", s->abandoned ? hangs : "");
        else if (WIFSIGNALED(s->wait_status))
            snprintf(text, sizeof text, "%s was ended by signal %d before the command was run", who,
                     WTERMSIG(s->wait_status));
        else
            snprintf(text, sizeof text, "%s ended with status %d before the command was run", who,
                     WEXITSTATUS(s->wait_status));
        shepherd_launch_failed(s, text);
    }
    if (s->not_run && (!s->unrun_status || status->stopped)) {
        status->phase = LAUNCH_FAILED;
        return;
    }
    if (s->not_run) { /* as from a shell: the job has an exit status that scripts know */
        status->phase = LAUNCH_ENDED;
        status->exit_status = s->unrun_status;
        status->cause = EXIT_FAILED;
        return;
    }
    status->phase = LAUNCH_ENDED;
    if (!s->process_ended)
        status->signal = SIGKILL; /* which waits for it in the kernel */
    else if (WIFSIGNALED(s->wait_status))
        status->signal = WTERMSIG(s->wait_status);
    else
        status->exit_status = WEXITSTATUS(s->wait_status);
    if (!status->stopped)
        ending_examine(s);
    evidence = launch_evidence(status);
    evidence.requeue = s->request.requeue;
    status->cause = cause_decide(&evidence);
    if (status->cause == EXIT_IDLE) {
        snprintf(text, sizeof text, "it did not use its GPUs for %s, its idle limit",
                 format_duration(s->idle_limit_ns, duration));
        status_set_message(status, text, strlen(text));
    }
    if (status->cause == EXIT_TIMEOUT) {
        snprintf(text, sizeof text,
                 !status->timed_out ? "it ended after the signal before its time limit of %s"
                 : s->exec_said     ? "time limit of %s reached"
                                    : "time limit of %s reached before the command was run",
                 format_duration(s->request.time_limit_ns, duration));
        status_set_message(status, text, strlen(text));
    }
}
